// Merge a pull request by the types that openapi-typescript made; print what was seen.
// `words.ts` has the words in the case of this service: a word of the other case is an error of
// types.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";
import { CANCELLED, FAILED, MERGED } from "./words.js";

declare const process: { argv: string[] };

const [url, token, host, branch, number] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { "x-api-token": token } });
const repo = { host, owner: "octo", name: "widgets" };

async function record(asked: number, more: { sinceVersion?: string; waitFor?: number } = {}) {
  const body = { repo, targetBranch: branch, pr: { number: asked }, ...more };
  return client.POST("/v1/getSubmittedPullRequest", { body });
}

const before = await client.POST("/v1/getQueue", { body: { repo, targetBranch: branch } });
const made = await client.POST("/v1/submitPullRequest", {
  body: { repo, targetBranch: branch, pr: { number: Number(number) } },
});
let found = (await record(Number(number))).data!;
while (found.state !== MERGED && found.state !== FAILED && found.state !== CANCELLED) {
  found = (await record(Number(number), { sinceVersion: found.recordVersion, waitFor: 20 })).data!;
}
const refused = (await record(4_000_000)).error;
const stranger = createClient<paths>({ baseUrl: url });
const unknown = await stranger.POST("/v1/getQueue", {
  body: { repo, targetBranch: branch },
  parseAs: "text",
});
console.log(
  JSON.stringify({
    queue: before.data!.state,
    result: made.data!.result,
    state: found.state,
    landed: Boolean(found.conclusion?.mergedSha),
    refused:
      typeof refused === "object" ? [refused.status, refused.code, Boolean(refused.detail)] : null,
    unknown: String(unknown.error).split(".")[0],
  }),
);
