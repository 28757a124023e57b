// Merge a pull request by the client that @hey-api/openapi-ts made; print what was seen.
import { client } from "./generated/client.gen.js";
import { getQueue, getSubmittedPullRequest, submitPullRequest } from "./generated/index.js";
import { CANCELLED, FAILED, MERGED } from "./words.js";

declare const process: { argv: string[] };

const [url, token, host, branch, number] = process.argv.slice(2);
client.setConfig({ baseUrl: url, auth: () => token });
const repo = { host, owner: "octo", name: "widgets" };

async function record(asked: number, more: { sinceVersion?: string; waitFor?: number } = {}) {
  const body = { repo, targetBranch: branch, pr: { number: asked }, ...more };
  return getSubmittedPullRequest({ body });
}

const before = await getQueue({ body: { repo, targetBranch: branch }, throwOnError: true });
const made = await submitPullRequest({
  body: { repo, targetBranch: branch, pr: { number: Number(number) } },
  throwOnError: true,
});
let found = (await record(Number(number))).data!;
while (found.state !== MERGED && found.state !== FAILED && found.state !== CANCELLED) {
  found = (await record(Number(number), { sinceVersion: found.recordVersion, waitFor: 20 })).data!;
}
const refused = (await record(4_000_000)).error;
client.setConfig({ auth: undefined });
const unknown = await getQueue({ body: { repo, targetBranch: branch }, parseAs: "text" });
console.log(
  JSON.stringify({
    queue: before.data.state,
    result: made.data.result,
    state: found.state,
    landed: Boolean(found.conclusion?.mergedSha),
    refused:
      typeof refused === "object" ? [refused.status, refused.code, Boolean(refused.detail)] : null,
    unknown: String(unknown.error).split(".")[0],
  }),
);
