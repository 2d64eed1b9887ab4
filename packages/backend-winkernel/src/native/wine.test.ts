import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { needs } from "@turnout/house/needs";
import { WineMachine } from "@turnout/house/wine";
import { firstHour } from "../first-hour/first-hour.ts";
import type { Finding } from "../first-hour/first-hour.ts";
import { parseRecording, replayedHns } from "../first-hour/recording.ts";
import { MISTAKES } from "../test-support/wine/mistakes.ts";

const NETWORK = "0b9f2a1c-6d53-4a0e-9a57-2f5f0c1d7e11";
const NAME = "cbr0 日本😀";
const LOCAL = "11223344-5566-4788-99aa-bbccddeeff00";
const support = (name: string): URL => new URL(`../test-support/wine/${name}`, import.meta.url);

/** What the rehearsal finds where nothing is wrong. */
const [MADE, BALANCER] = ["10203043-5060-4708-90a0-b0c0d0e0f001", "10203044-5060-4708-90a0-b0c0d0e0f001"];
const balancerAt = (vip: string): unknown => ({
  id: BALANCER,
  endpointIds: [MADE],
  sourceVip: "",
  vips: [vip],
  ports: [{ protocol: 6, internalPort: 8080, externalPort: 80, distributionType: 0, flags: 0 }],
  flags: 0,
});
const endpointAt = (id: string, ip: string): Readonly<Record<string, unknown>> => ({
  id,
  name: "",
  networkId: NETWORK,
  addresses: [ip],
  mac: "00-15-5d-aa-bb-cc",
  isRemote: false,
  provider: "",
});
const RIGHT: Readonly<Record<string, unknown>> = {
  version: { major: 15, minor: 5 },
  networks: [{ id: NETWORK, name: NAME, type: "l2bridge", remoteSubnets: [] }],
  "others go on while HNS takes its time": true,
  "endpoints of the CNI": [endpointAt(LOCAL, "10.1.1.1")],
  "an endpoint is made": { ...endpointAt(MADE, "10.1.2.1"), mac: "02-11-0a-01-02-01", isRemote: true },
  "a load balancer is made": balancerAt("10.96.0.1"),
  "another one at its address": "exists: HNS: 0x803b0013: It was told to fail 日本😀",
  "an endpoint on a network that isn't there": "notFound: HNS: 0x803b0001: The network was not found.",
  "it is changed": balancerAt("10.96.0.3"),
  "load balancers": [balancerAt("10.96.0.3")],
  "an endpoint that is in use": "inUse: HNS: 0x803b002c: It was told to fail 日本😀",
  "a failure while it is looked at": "down: HNS: 0x800706ba: It was told to fail 日本😀",
  "one goes while it is looked at": [],
  "it is deleted": "done",
  "it is deleted again": "notFound: HNS: 0x80070490: Element not found.",
  "many are made and deleted": "done",
  "the endpoint is deleted": "done",
  "is anything left": [[], 1],
  "left in memory": { handles: 0, texts: 0, badHandles: 0 },
};
/** Where each mistake shows, of all that is otherwise then. */
const SHOWN: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "a handle is not closed": { "left in memory": { handles: 204, texts: 0, badHandles: 0 } },
  "a handle of one kind is closed as another": { "left in memory": { handles: 204, texts: 0, badHandles: 204 } },
  "a text is not freed": { "left in memory": { handles: 0, texts: 223, badHandles: 0 } },
  "a text is freed by the allocator of C": { "left in memory": { handles: 0, texts: 223, badHandles: 0 } },
  "the record of an error is not freed": { "left in memory": { handles: 0, texts: 1, badHandles: 0 } },
  "a GUID is in the order of its text": { "it is deleted": "notFound: HNS: 0x80070490: Element not found." },
  "an HRESULT is ignored": { "it is deleted again": "done" },
  "calls keep everybody waiting": { "others go on while HNS takes its time": false },
  "an HRESULT is unsigned": { "an endpoint that is in use": "refused: HNS: 0x80004005: It was told to fail 日本😀" },
  "texts are bytes": { "an endpoint is made": "refused: HNS: 0x803b001b: Invalid JSON document string." },
  "arguments are in another order": { "a load balancer is made": "refused: HNS: 0x803b001b: Invalid JSON document string." },
};

let machine: WineMachine;

/** Make a folder with a network of a CNI and one pod. */
function prepare(name: string): { readonly folder: string; readonly env: Readonly<Record<string, string>> } {
  const folder = machine.makeFolder(name);
  const objects = [
    `N ${NETWORK} ${JSON.stringify({ Name: NAME, Type: "L2Bridge" })}`,
    `E ${LOCAL} ${JSON.stringify({ HostComputeNetwork: NETWORK, IpConfigurations: [{ IpAddress: "10.1.1.1" }], MacAddress: "00-15-5D-AA-BB-CC" })}`,
  ];
  writeFileSync(join(folder, "objects.txt"), `${objects.join("\n")}\n`);
  return { folder, env: { TURNOUT_HNS_STUB: machine.pathOf(folder) } };
}

/** Play the rehearsal; gives its report, or what it printed where it broke off. */
async function rehearse(name: string, mistake: string): Promise<Readonly<Record<string, unknown>>> {
  const { folder, env } = prepare(name);
  const args = [machine.pathOf(join(folder, "report.json")), mistake];
  const { code, stdout, stderr } = await machine.run({ script: support("rehearsal.ts"), args, env });
  if (code !== 0) return { "broke off": `${code} ${stdout} ${stderr}` };
  return JSON.parse(readFileSync(join(folder, "report.json"), "utf8")) as Readonly<Record<string, unknown>>;
}

describe("the binding to HNS, on Node for Windows under Wine", needs("wine"), () => {
  beforeAll(async () => {
    machine = await WineMachine.boot();
    await machine.install({ source: support("computenetwork.c"), name: "computenetwork.dll", links: ["ole32", "uuid"] });
    await machine.install({ source: support("vmcompute.c"), name: "vmcompute.dll", uses: ["computenetwork.dll"] });
  });
  afterAll(() => machine.stop());

  it("calls every function rightly, lets go of all that it was given, and tells what HNS refuses", async () => {
    expect(await rehearse("right", "")).toEqual(RIGHT);
  });

  it.each(Object.keys(MISTAKES))("would show it when %s", async (mistake) => {
    const found = await rehearse(mistake.replaceAll(" ", "-"), mistake);
    expect(found).toMatchObject(SHOWN[mistake] ?? { nothing: "is known of it" });
    expect(RIGHT).not.toMatchObject(SHOWN[mistake] ?? {});
  });
  it("the first hour on a node is played again from what it recorded", async () => {
    const { folder, env } = prepare("first-hour");
    const file = join(folder, "recording.jsonl");
    const script = new URL("../first-hour/main.ts", import.meta.url);
    const { stdout, stderr } = await machine.run({ script, args: [NAME, machine.pathOf(file), "5"], env });
    expect(stderr).toBe("");
    const again: string[] = [];
    const hns = replayedHns(parseRecording(readFileSync(file, "utf8")));
    const notify = ({ what, found }: Finding): void => void again.push(`${what}: ${found}`);
    const { signal } = new AbortController();
    await firstHour(hns, { networkName: NAME, count: 5, signal, nowMs: () => 0, notify });
    expect(again).toContain("removing load balancers: 9 removed");
    expect(
      stdout
        .trim()
        .replace(/\d+ ms/g, "0 ms")
        .split(/\r?\n/),
    ).toEqual(again);
  });
});
