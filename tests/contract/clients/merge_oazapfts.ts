// Merge a pull request by the client that oazapfts made; print what was seen.
import { defaults, getQueue, getSubmittedPullRequest, submitPullRequest } from "./generated.js";
import { CANCELLED, FAILED, MERGED } from "./words.js";

declare const process: { argv: string[] };

const [url, token, host, branch, number] = process.argv.slice(2);
defaults.baseUrl = url;
defaults.headers = { "x-api-token": token };
const repo = { host, owner: "octo", name: "widgets" };

async function record(asked: number, more: { sinceVersion?: string; waitFor?: number } = {}) {
  return getSubmittedPullRequest({ repo, targetBranch: branch, pr: { number: asked }, ...more });
}

async function recorded(asked: number, more = {}) {
  const answer = await record(asked, more);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.data));
  return answer.data;
}

const before = await getQueue({ repo, targetBranch: branch });
const made = await submitPullRequest({
  repo,
  targetBranch: branch,
  pr: { number: Number(number) },
});
let found = await recorded(Number(number));
while (found.state !== MERGED && found.state !== FAILED && found.state !== CANCELLED) {
  found = await recorded(Number(number), { sinceVersion: found.recordVersion, waitFor: 20 });
}
const refused = await record(4_000_000);
defaults.headers = {};
const unknown = await getQueue({ repo, targetBranch: branch });
console.log(
  JSON.stringify({
    queue: before.status === 200 ? before.data.state : null,
    result: made.status === 200 ? made.data.result : null,
    state: found.state,
    landed: Boolean(found.conclusion?.mergedSha),
    refused:
      refused.status === 404
        ? [refused.data.status, refused.data.code, Boolean(refused.data.detail)]
        : null,
    unknown: unknown.status === 401 ? unknown.data.split(".")[0] : null,
  }),
);
