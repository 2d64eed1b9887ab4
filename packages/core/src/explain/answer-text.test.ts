import { describe, expect, it } from "vitest";
import { rankedCauses } from "./answer.ts";
import type { Answer, Cause } from "./answer.ts";
import { answerText } from "./answer-text.ts";

const LONG =
  "iptables -t filter -I FORWARD -m conntrack --ctstate DNAT -m comment --comment 'a comment that is as long as it can be' -j ACCEPT";
const ANSWER: Answer = {
  packet: { family: "IPv4", protocol: "TCP", source: "10.1.0.7", destination: "10.96.0.10", port: 80, device: "veth3" },
  node: "n1",
  backend: "nft",
  steps: [{ says: "it goes to any endpoint", rule: "R-22" }],
  fate: { is: "forward", endpoints: [{ ip: "10.1.2.5", port: 8080, nodeName: "n2", isLocal: false, masquerade: false }] },
  causes: [],
  unseen: [],
  unjudged: [],
  isSurveyed: true,
  isProbed: false,
};
const drop: Cause = { id: "external_drop", says: "a rule drops the packet", show: [LONG, "true"], fix: "let it through", commands: [LONG] };
const changed: Cause = {
  id: "kernel_changed",
  says: "the kernel sends it to A, should: B",
  show: ["nft list map ip turnout m"],
  fix: "restart",
};
const gone: Cause = { id: "not_running", isSure: false, says: "no proxy answers", fix: "start it" };

function lines(answer: Partial<Answer>): readonly string[] {
  return answerText({ ...ANSWER, ...answer }).split("\n");
}

describe("an answer for people", () => {
  it("has each command whole on a line of its own", () => {
    expect(lines({ causes: [drop] })).toEqual(
      expect.arrayContaining([`  look:  ${LONG}`, "         true", "  mend:  let it through:", `           ${LONG}`]),
    );
  });

  it("has what may be done in place of that behind it, with its own words and commands", () => {
    const instead = { fix: "if nobody needs the rule, delete it", commands: ["iptables -D FORWARD 1"] };
    const at = lines({ causes: [{ ...drop, instead }] }).indexOf("  mend:  let it through:");
    expect(lines({ causes: [{ ...drop, instead }] }).slice(at, at + 5)).toEqual([
      "  mend:  let it through:",
      `           ${LONG}`,
      "  or:    if nobody needs the rule, delete it:",
      "           iptables -D FORWARD 1",
      "",
    ]);
  });

  it("says of the way that it may not be taken where something keeps the packet from it", () => {
    const steps = [...ANSWER.steps, { says: "to 10.1.2.5:8080: it leaves by up0", isOfWay: true as const }];
    const reported = (...causes: readonly Cause[]): readonly string[] => lines({ steps, causes }).slice(3, 5);
    const way = "  2  to 10.1.2.5:8080: it leaves by up0";
    expect(reported(changed)).toEqual(["     its way, unless what is named below keeps it from that:", way]);
    for (const later of [gone, { ...gone, id: "unanswered", isSure: true }, { ...changed, isSure: false }] as unknown as readonly Cause[])
      expect(reported(later)).toEqual([way, ""]);
  });

  it("without a step has one empty line before what is wrong", () => {
    expect(lines({ steps: [], causes: [changed] }).slice(1, 3)).toEqual([
      "",
      "culprit: the kernel sends it to A, should: B [kernel_changed]",
    ]);
  });

  it("says no more than was looked at, and what to ask next", () => {
    expect(lines({}).slice(4)).toEqual([
      "nothing wrong was found on this node",
      "if it does not arrive: first see whether it comes to this node",
      "  tcpdump -ni any host 10.1.0.7",
      "then see whether the endpoint answers",
      "  turnout why 10.1.0.7 10.96.0.10:80 --probe",
      "then ask on the endpoint's node, n2",
      "  turnout why 10.1.0.7 10.1.2.5:8080",
      "",
    ]);
  });

  it("does not advise to probe what was probed, nor what is not TCP", () => {
    const probed = lines({ isProbed: true }).join("\n");
    expect(probed).toContain("  curl -m 2 http://10.1.2.5:8080/\n");
    expect(probed).not.toContain("--probe");
    const datagram = lines({ packet: { ...ANSWER.packet, protocol: "UDP" } });
    expect(datagram.slice(7, 9)).toEqual(["then ask on the endpoint's node, n2", "  turnout why 10.1.0.7 10.1.2.5:8080/udp"]);
  });

  it("says that the device was assumed, and of the node's own packets not that they may not come here", () => {
    const { packet } = ANSWER;
    expect(lines({ packet: { ...packet, isDeviceAssumed: true } }).join(" ")).toContain("it was taken to come in by veth3");
    expect(lines({ packet: { ...packet, device: "" } }).join(" ")).not.toContain("tcpdump");
  });

  it("says where to ask on where an endpoint is silent, and notes last", () => {
    const silent: Cause = { id: "unanswered", says: "10.1.2.5:8080 is silent", fix: "see why" };
    const reported = lines({ causes: [silent], notes: ["the other node counts"] });
    expect(reported.slice(4)).toEqual([
      "culprit: 10.1.2.5:8080 is silent [unanswered]",
      "  mend:  see why",
      "ask on the endpoint's node, n2",
      "  turnout why 10.1.0.7 10.1.2.5:8080",
      "",
      "note: the other node counts",
      "",
    ]);
  });

  it("names rules that can't be judged, each on a line of its own", () => {
    const rule = `-A FORWARD -p tcp -m statistic --mode random --probability 0.9 ${"-m comment --comment x ".repeat(4)}-j DROP`;
    const reported = lines({ unjudged: [{ says: "table filter may drop some packets", rule, show: "iptables -S FORWARD" }] });
    expect(reported.slice(4, 10)).toEqual([
      "nothing wrong was found on this node, but not all rules on the packet's way can be judged",
      "",
      "can't be judged:",
      "  - table filter may drop some packets:",
      `      ${rule}`,
      "    look:  iptables -S FORWARD",
    ]);
  });

  it("says first what could not be read, where nothing wrong was found", () => {
    const unseen = ["foreign rules (nftables, iptables): nft took too long"];
    expect(lines({ unseen }).slice(4, 7)).toEqual([
      "could NOT be read: foreign rules (nftables, iptables): nft took too long",
      "",
      "nothing wrong was found in the rest, but what is wrong may be in what could not be read",
    ]);
    expect(lines({ unseen, causes: [drop] }).at(-2)).toBe(`not looked at: ${unseen[0]}`);
  });

  it("of a proxy that has few rights says that before all else, once, with the command that has more", () => {
    const unseen = ["foreign rules (iptables-legacy): [tool_failed] Permission denied"];
    const packet = { ...ANSWER.packet, protocol: "UDP" } as const;
    for (const causes of [[], [drop]]) {
      const reported = lines({ packet, unseen, causes, isSurveyedByProxy: true });
      expect(reported.slice(2, 6)).toEqual([
        `could NOT be read by the proxy: ${unseen[0]}`,
        "to ask with all rights, as root on node n1:",
        "  turnout why 10.1.0.7 10.96.0.10:80/udp",
        "",
      ]);
      expect(reported.join("\n").split("Permission denied")).toHaveLength(2);
    }
    expect(lines({ isSurveyedByProxy: true })).toEqual(lines({}));
  });

  it("names what else is wrong by its word, too", () => {
    const reported = lines({ causes: [changed, gone] });
    expect(reported.slice(-4)).toEqual(["", "also found:", "  - no proxy answers [not_running]", ""]);
  });
});

describe("the order of causes", () => {
  const { isSure: _isSure, ...sure } = gone;
  it.each<readonly [string, readonly Cause[], readonly string[]]>([
    ["what the kernel holds otherwise goes before a proxy that is stopped", [sure, changed], ["kernel_changed", "not_running"]],
    ["a guess goes behind what is sure", [gone, changed], ["kernel_changed", "not_running"]],
    [
      "other flags make everything else doubtful",
      [drop, { id: "other_flags", isSure: false, says: "other flags", fix: "give them" }],
      ["other_flags", "external_drop"],
    ],
    [
      "a silent gateway goes behind an address that nobody has",
      [
        { ...drop, id: "neighbour" },
        { ...gone, id: "unknown_address" },
      ],
      ["unknown_address", "neighbour"],
    ],
    [
      "and behind a route of a pod that is missing",
      [
        { ...drop, id: "neighbour" },
        { ...gone, id: "no_route" },
      ],
      ["no_route", "neighbour"],
    ],
    [
      "a device that is down goes before the address on it",
      [
        { ...drop, id: "node_port_address" },
        { ...drop, id: "device_down" },
      ],
      ["device_down", "node_port_address"],
    ],
    [
      "a next hop that does not answer goes after a way back that may be missing",
      [
        { ...drop, id: "neighbour" },
        { ...gone, id: "no_way_back" },
      ],
      ["no_way_back", "neighbour"],
    ],
    [
      "a device that is down goes after the address that nobody has",
      [
        { ...drop, id: "device_down" },
        { ...drop, id: "unknown_address" },
      ],
      ["unknown_address", "device_down"],
    ],
    ["a refused row explains what the kernel lacks", [changed, { ...changed, id: "refused_row" }], ["refused_row", "kernel_changed"]],
  ])("%s", (_name, causes, ids) => {
    expect(rankedCauses(causes).map(({ id }) => id)).toEqual(ids);
  });
});
