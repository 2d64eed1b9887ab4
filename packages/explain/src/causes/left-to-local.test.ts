import { expect, it } from "vitest";
import type { AskedPacket, Survey } from "@turnout/core";
import { leftToLocal } from "./left-to-local.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "UDP", source: "10.1.0.7", destination: "10.96.0.10", port: 53, device: "veth3" };
const LEFT = "10.96.0.10 is an address of this node too, and is untracked on purpose: it is left to a program here (NodeLocal DNS)";

it("a cluster IP that is left to a local program is told so, with what else there is to say", () => {
  const survey: Survey = { steps: [{ says: "a way" }], causes: [], notes: ["a note"], unseen: [] };
  expect(leftToLocal(PACKET, survey, true)).toEqual({
    steps: [{ says: LEFT }, { says: "a way" }],
    causes: [],
    notes: [LEFT, "a note"],
    unseen: [],
  });
});

it("one that is left to whoever listens there says so", () => {
  const { steps } = leftToLocal(PACKET, { steps: [], causes: [], unseen: [] }, false);
  expect(steps).toEqual([
    { says: "10.96.0.10 is an address of this node too, and a program here listens on this port: it is left to it (NodeLocal DNS)" },
  ]);
});

it("where that program does not listen, it is the one to start, and no Service's port to look for", () => {
  const unanswered = {
    id: "unanswered",
    isSure: false,
    says: "no Service has it",
    show: ["kubectl get services -A"],
    fix: "ask",
  } as const;
  const { causes } = leftToLocal(PACKET, { steps: [], causes: [unanswered], unseen: [] }, true);
  expect(causes).toMatchObject([
    { id: "unanswered", isSure: false, says: `${LEFT}, and nothing listens there`, show: ["ss -ulnp 'sport = :53'"] },
  ]);
});
