import { forbidden, hardFail, healthPortTaken, rulesChanged, starting } from "./event-checks.ts";
import { Following } from "./following-checks.ts";
import { createApiServerStage } from "./stage.ts";

/**
 * Turnout with a real kube-apiserver: `KUBE_APISERVER=path ETCD=path [KUBE_PROXY=path] npm run e2e:apiserver`. Needs root, and the command built. With
 * KUBE_PROXY its events are compared with those of the real kube-proxy. Exits with 1 when a check failed, and with 0 and one line without the programs.
 */
async function main(): Promise<boolean> {
  const { KUBE_APISERVER: apiserver, ETCD: etcd, KUBE_PROXY: kubeProxy } = process.env;
  if (apiserver === undefined || etcd === undefined) {
    process.stdout.write("skipped: KUBE_APISERVER and ETCD must name the two programs (docs/testing.md)\n");
    return true;
  }
  const stage = await createApiServerStage({ apiserver, etcd }, kubeProxy);
  let isWell = true;
  const execute = async (name: string, check: () => Promise<string>): Promise<void> => {
    try {
      process.stdout.write(`✓ ${name}: ${await check()}\n`);
    } catch (error) {
      isWell = false;
      process.stdout.write(`✗ ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    }
  };
  try {
    await execute("the event of the start is kube-proxy's", () => starting(stage));
    await execute("another program that changes rules is reported at the Node", () => rulesChanged(stage));
    await execute("a health check node port that is in use is reported at the Service", () => healthPortTaken(stage));
    await execute("a server that can't listen is reported at the Node before the process ends", () => hardFail(stage));
    await execute("without the right to write events there is one line", () => forbidden(stage));
    const following = await Following.start(stage);
    await execute("200 Services are made", () => following.create());
    await execute("100 of them change", () => following.change());
    await execute("the API server is killed and comes back", () => following.killed());
    await execute("watches are refused with 410 Gone", () => following.compacted());
    await execute("etcd is compacted below open watches", () => following.compactedBelow());
    await execute("a new process finds nothing to write", () => following.again());
    await execute("all requests are permitted by system:node-proxier", () => following.rights());
    if (!isWell) process.stdout.write(`what the proxy wrote:\n${following.log}`);
  } finally {
    stage.destroy();
  }
  return isWell;
}

process.exitCode = (await main()) ? 0 : 1;
