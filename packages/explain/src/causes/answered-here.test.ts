import type { Cause, Survey } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { answeredHere, arrivingQuestion, isAnsweredHere, notHere, openedQuestion } from "./answered-here.ts";
import { externalFindings } from "./external-causes.ts";
import type { PathQuestion } from "../ways/path-question.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import { FORWARDED } from "../test-support/forwarded-way.ts";

const ENDPOINT = { ip: "10.1.2.5", port: 8080, nodeName: "n2", isLocal: false, masquerade: true };
const QUESTION: PathQuestion = {
  packet: {
    family: "IPv4",
    protocol: "TCP",
    source: "10.1.1.7",
    destination: "10.96.0.10",
    port: 80,
    device: "veth3",
    isDeviceAssumed: true,
  },
  fate: { is: "forward", endpoints: [ENDPOINT], isHostAddress: true },
  hostAddresses: ["172.18.0.1"],
  hasKubeChains: false,
  servesAtInput: false,
  answersItself: true,
  translatesAtDevices: false,
  masqueradeBit: 14,
};

describe("a packet that a process here answers", () => {
  it("comes in for this host, which has the Service's address", () => {
    const { packet, fate, hostAddresses, processFate } = arrivingQuestion(QUESTION);
    expect([packet, fate, processFate]).toEqual([QUESTION.packet, { is: "pass" }, QUESTION.fate]);
    expect(hostAddresses).toEqual(["172.18.0.1", "10.96.0.10"]);
  });

  it("has the process connect to the endpoint as this host, untranslated", () => {
    const { packet, fate } = openedQuestion(QUESTION);
    expect(packet).toMatchObject({ device: "" });
    expect(packet).not.toHaveProperty("isDeviceAssumed");
    expect(fate).toEqual({ is: "forward", at: "socket", endpoints: [{ ...ENDPOINT, masquerade: false }] });
  });

  it("is one that the process answers, whatever the backend does otherwise", () => {
    const translated = { ...QUESTION, answersItself: false };
    const fate = { is: "forward", at: "process", endpoints: [ENDPOINT] } as const;
    expect([isAnsweredHere(translated), isAnsweredHere({ ...translated, fate })]).toEqual([false, true]);
  });

  it("is one for a Service, and of a backend that answers itself", () => {
    expect([isAnsweredHere(QUESTION), isAnsweredHere(arrivingQuestion(QUESTION)), isAnsweredHere(openedQuestion(QUESTION))]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("what was found of both connections", () => {
  const drop = (command: string): Cause => ({ id: "external_drop", says: command, show: ["show INPUT"], fix: "", commands: [command] });
  const found = (causes: readonly Cause[], step: string): Survey => ({
    steps: [{ says: step }],
    causes,
    notes: ["noted"],
    unseen: ["unseen"],
    unjudged: [{ says: "may drop", rule: "-m limit", show: "" }],
  });

  it("is told of the client's first, and a chain that drops both is named once, with what lets either through", () => {
    const { steps, causes, notes, unseen, unjudged } = answeredHere(
      found([drop("accept the packet")], "in"),
      found([drop("accept the answer")], "out"),
    );
    expect(steps.map(({ says }) => says)).toEqual([
      "the proxy's process answers it: the packet is for this host itself",
      "in",
      expect.stringContaining("the process opens a connection of its own to the endpoint"),
      "out",
    ]);
    expect(causes).toEqual([{ ...drop("accept the packet"), commands: ["accept the packet", "accept the answer"] }]);
    expect([notes, unseen, unjudged?.length]).toEqual([["noted"], ["unseen"], 1]);
  });
});

it("an address that this host does not have keeps its packets from the process, whatever is wrong on the way that they take instead", () => {
  const other = (id: "two_proxies" | "forwarding_off"): Cause => ({ id, says: "", fix: "" });
  const { causes } = notHere({ steps: [], causes: [other("forwarding_off"), other("two_proxies")], unseen: [] }, QUESTION.packet);
  expect(causes).toMatchObject([{ id: "kernel_missing", show: ["ip route get 10.96.0.10"] }, { id: "two_proxies" }]);
});

it("a rule that sends what is for the process elsewhere is named, and one about others is not", () => {
  const way = { ...FORWARDED, isTranslated: false, isForProxy: true, outDevice: "" };
  const blamed = (match: string) =>
    externalFindings(
      [readIptablesTable("iptables", "nat", `:PREROUTING ACCEPT\n-A PREROUTING ${match} -j REDIRECT --to-ports 3128`)],
      way,
    ).causes.map(({ id, says }) => [id, says.includes("sends what is for the proxy's process elsewhere")]);
  expect(blamed(`-d ${FORWARDED.packet.destination}/32 -p tcp`)).toEqual([["external_translation", true]]);
  expect(blamed("-d 10.96.99.99/32 -p tcp")).toEqual([]);
});
