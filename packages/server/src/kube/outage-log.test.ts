import { ProxyError } from "@turnout/core";
import { beforeEach, expect, test } from "vitest";
import { OutageLog, LoggedProblems } from "./outage-log.ts";
import { ManualClock, RecordingLog } from "../test-support/world.ts";

let clock: ManualClock;
let log: RecordingLog;
let service: OutageLog;
let node: OutageLog;

beforeEach(() => {
  clock = new ManualClock();
  log = new RecordingLog();
  const parts = { clock, log, remindMs: 60_000, said: new LoggedProblems() };
  service = new OutageLog("Service", parts);
  node = new OutageLog("Node", parts);
});

/** What was said aloud: kind and whether it fails. */
function said(): readonly string[] {
  const words = { "the feed failed": "fails", "the feed works again": "works" };
  return log.lines.flatMap(({ line }) => {
    const [, kind, what] = /^(?:warn|info) (\w+): (the feed failed|the feed works again)/.exec(line) ?? [];
    return what === undefined ? [] : [`${kind} ${words[what as keyof typeof words]}`];
  });
}

const AWAY = new ProxyError("feed_lost", "connection refused");

test("one trouble of two feeds is said by the first, and its end too", () => {
  service.failed(AWAY, 500);
  node.failed(AWAY, 500);
  service.recovered();
  node.recovered();
  expect(said()).toEqual(["Service fails", "Service works"]);
});

test("two troubles are two lines", () => {
  service.failed(AWAY, 500);
  node.failed(new ProxyError("permission_denied", "nodes is forbidden"), 500);
  expect(said()).toEqual(["Service fails", "Node fails"]);
});

test("a trouble that stays for one feed after another's has ended is said by that one within the reminder's time", () => {
  service.failed(AWAY, 500);
  node.failed(AWAY, 500);
  service.recovered();
  clock.advance(60_000);
  node.failed(AWAY, 500);
  node.recovered();
  expect(said()).toEqual(["Service fails", "Service works", "Node fails", "Node works"]);
});

test("a long outage is told each minute, a flapping server no more often", () => {
  for (let second = 0; second < 150; second++) {
    service.failed(AWAY, 500);
    node.failed(AWAY, 500);
    if (second % 10 === 9) node.recovered();
    clock.advance(1_000);
  }
  expect(said().filter((line) => line.endsWith("fails"))).toHaveLength(3);
});

test("whoever listens hears of every failure, and of each success", () => {
  const heard: string[] = [];
  const onHealth = (subject: string, problem: string): void => void heard.push(`${subject}: ${problem}`);
  const slice = new OutageLog("EndpointSlice", { clock, log, remindMs: 60_000, said: new LoggedProblems(), onHealth });
  slice.recovered();
  slice.failed(AWAY, 500);
  slice.failed(AWAY, 500);
  slice.recovered();
  expect(heard).toEqual([
    "EndpointSlice: ",
    "EndpointSlice: [feed_lost] connection refused",
    "EndpointSlice: [feed_lost] connection refused",
    "EndpointSlice: ",
  ]);
});

test("an outage tells of its end in whole milliseconds", () => {
  service.failed(AWAY, 500);
  clock.advance(1_234.567_891);
  service.recovered();
  expect(log.lines.at(-1)).toEqual({ line: "info Service: the feed works again", fields: { failures: 1, afterMs: 1_235 } });
});
