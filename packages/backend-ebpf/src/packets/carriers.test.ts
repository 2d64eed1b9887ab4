import { ProxyError } from "@turnout/core/backend";
import type { Outcome } from "@turnout/core/backend";
import { RecordingLog } from "@turnout/core/testing";
import { beforeEach, expect, it } from "vitest";
import { Carriers } from "./carriers.ts";
import type { DeviceFact } from "./devices.ts";
import type { DeviceObject, EbpfObject } from "../objects.ts";
import type { Step } from "../plan.ts";

const fact = (index: number, name: string): DeviceFact => ({
  index,
  name,
  isNamed: false,
  isWayOut: false,
  addresses: [],
  destinations: [],
});
const [ETH0, CNI0, OTHER] = [fact(2, "eth0"), fact(3, "cni0"), fact(4, "other")];

/** Both programs of each device. */
const at = (...devices: readonly DeviceFact[]): readonly DeviceObject[] =>
  devices.flatMap(({ index }) =>
    (["ingress", "egress"] as const).map((way): DeviceObject => ({
      kind: "device",
      key: `${index}-${way}`,
      value: { program: way === "ingress" ? "turnout_in" : "turnout_out", programs: "v1-00/packets-00" },
    })),
  );
const writing = (objects: readonly EbpfObject[]): readonly Step[] => objects.map((object) => ({ verb: "write", object }));
const deleting = (objects: readonly EbpfObject[]): readonly Step[] => objects.map((object) => ({ verb: "delete", object }));

let log: RecordingLog;
let carriers: Carriers;
const lines = (): readonly string[] =>
  log.lines.splice(0).map(({ level, message, fields }) => `${level} ${message} ${JSON.stringify(fields)}`);
const apply = (steps: readonly Step[], outcome: Outcome<EbpfObject> = {}): void => carriers.applied({ steps }, outcome);
const counts = (): readonly string[] => carriers.metrics().map(({ labels, value }) => `${labels?.["device"]} ${value}`);

beforeEach(() => {
  log = new RecordingLog();
  carriers = new Carriers(log);
});

it("tells once which devices carry programs and which don't, and then what changes", () => {
  carriers.learn([ETH0, OTHER], at(ETH0));
  carriers.found([]);
  expect([lines(), counts()]).toEqual([[], ["eth0 0", "other 0"]]);
  apply(writing(at(ETH0)));
  apply([]);
  expect(lines()).toEqual(['info devices that carry programs for packets {"devices":"eth0","without":"other"}']);
  expect(counts()).toEqual(["eth0 2", "other 0"]);
  carriers.learn([CNI0, ETH0, OTHER], at(CNI0, ETH0));
  apply(writing(at(CNI0)));
  expect(lines()).toEqual(['info other devices carry programs for packets {"added":"cni0","removed":"none"}']);
  // It is gone when its programs are taken out of the books.
  carriers.learn([ETH0, OTHER], at(ETH0));
  apply(deleting(at(CNI0)));
  apply([]);
  expect(lines()).toEqual(['info other devices carry programs for packets {"added":"none","removed":"cni0"}']);
});

it("tells what an earlier process left at once where nothing is to be done", () => {
  carriers.learn([ETH0, OTHER], at(ETH0));
  carriers.found(at(ETH0));
  carriers.found(at(ETH0));
  expect(lines()).toEqual(['info devices that carry programs for packets {"devices":"eth0","without":"other"}']);
});

it("waits with the line for what was deferred, and not for what the host refused", () => {
  carriers.learn([ETH0, CNI0], at(ETH0, CNI0));
  carriers.found([]);
  apply([], {});
  apply(writing(at(ETH0, CNI0)), { deferred: new Set(at(CNI0).map(({ key }) => `device ${key}`)) });
  expect(lines()).toEqual([]);
  apply(writing(at(CNI0)), { failed: new Map(at(CNI0).map(({ key }) => [`device ${key}`, new ProxyError("tool_failed", "refused")])) });
  expect(lines()).toEqual(['info devices that carry programs for packets {"devices":"eth0","without":"cni0"}']);
  apply(writing(at(CNI0)));
  expect(lines()).toEqual(['info other devices carry programs for packets {"added":"cni0","removed":"none"}']);
});

it("takes programs for missing that another hand removed, or the host refused", () => {
  carriers.learn([ETH0, CNI0], at(ETH0, CNI0));
  apply(writing(at(ETH0, CNI0)), {
    failed: new Map([["device 3-egress", new ProxyError("tool_failed", "refused")]]),
    deferred: new Set(["device 3-ingress"]),
  });
  expect(counts()).toEqual(["eth0 2", "cni0 0"]);
  const [first, ...rest] = at(ETH0);
  carriers.found([...rest, ...(first === undefined ? [] : [{ ...first, value: { program: "" as const, programs: "" } }])]);
  expect(counts()).toEqual(["eth0 1", "cni0 0"]);
});

it("tells that none does where none is chosen, and nothing where packets aren't served", () => {
  carriers.found([]);
  apply([]);
  expect(lines()).toEqual([]);
  const named = new Carriers(log);
  named.learn([ETH0], []);
  named.found([]);
  expect(lines()).toEqual(['info devices that carry programs for packets {"devices":"none","without":"eth0"}']);
});

it("knows which devices are to carry none, and nothing of those that aren't there", () => {
  carriers.learn([ETH0, OTHER], at(ETH0));
  expect(["eth0", "other", "gone"].map((name) => carriers.isWithout(name))).toEqual([false, true, false]);
});
