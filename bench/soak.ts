import { soak } from "@turnout/backend-userspace/testing";
import type { Holdings } from "@turnout/backend-userspace/testing";

const CONNECTIONS = Number(process.env["TURNOUT_SOAK_CONNECTIONS"] ?? 1_000_000);

function holdingsText({ heapUsed, rss, handles, numbers }: Holdings): string {
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  return `heap ${megabytes(heapUsed)}, RSS ${megabytes(rss)}, handles ${JSON.stringify(handles)}, ${JSON.stringify(numbers)}`;
}

const [what] = process.argv.slice(2);
if (what === "userspace" && Number.isInteger(CONNECTIONS) && CONNECTIONS > 0) {
  const report = await soak({
    connections: CONNECTIONS,
    progress: (done) => void (done % 50_000 === 0 && process.stderr.write(`${done} connections\n`)),
  });
  const { connections, sessions, seconds, outcomes, before, after } = report;
  console.log(`${connections} TCP connections and ${sessions} UDP sessions in ${seconds.toFixed(0)} s: ${JSON.stringify(outcomes)}`);
  console.log(`before  ${holdingsText(before)}`);
  console.log(`after   ${holdingsText(after)}`);
} else {
  process.stderr.write("usage: npm run soak -- userspace, with TURNOUT_SOAK_CONNECTIONS=n (default 1000000)\n");
  process.exitCode = 2;
}
