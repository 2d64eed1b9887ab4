import type { AskedPacket, Exec, FateEndpoint } from "@turnout/core";
import { expect, it } from "vitest";
import { readBalancedWay } from "./way.ts";
import type { Way } from "./way.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: "10.1.1.2", destination: "10.96.0.1", port: 80, device: "veth2" };
const ENDPOINT: FateEndpoint = { ip: "10.1.2.1", port: 8080, nodeName: "n2", isLocal: false, masquerade: false };
const LOCAL = { code: 0, stdout: '[{"type":"local","dev":"lo"}]', stderr: "" };
const WAY_OUT = { code: 0, stdout: '[{"dev":"eth0"}]', stderr: "" };

/** The way that is found, and which routes were asked for; `rules` as `ip -j rule` prints them. */
async function wayWith(
  rules: readonly object[],
  arrival = LOCAL,
  mark = 0,
): Promise<{ readonly way: Way; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const exec: Exec = {
    run: async (_file, args) => {
      if (args.includes("rule")) return { code: 0, stdout: JSON.stringify(rules), stderr: "" };
      if (args.includes("fibmatch")) return { code: 0, stdout: "[]", stderr: "" };
      asked.push(args.slice(args.indexOf("get") + 1).join(" "));
      return args.includes(PACKET.destination) ? arrival : WAY_OUT;
    },
    open: () => expect.unreachable(),
  };
  const way = await readBalancedWay({ exec, read: () => Promise.resolve("0") }, PACKET, ENDPOINT, mark, new AbortController().signal);
  return { way, asked };
}

it("a packet arrives by its device, leaves as this host's own with its mark, and its answers are forwarded", async () => {
  const { way, asked } = await wayWith([], LOCAL, 0x4000);
  expect(asked).toEqual(["10.96.0.1 from 10.1.1.2 iif veth2", "10.1.2.1 mark 0x4000", "10.1.1.2 from 10.1.2.1 iif eth0"]);
  expect(way).toMatchObject({ there: { is: "way", device: "eth0" }, back: { is: "way" }, isForwardedBack: true });
});

it("a rule about its source that refuses before the table main keeps it, and one behind does not", async () => {
  const refusing = (priority: number) => [{ priority, src: "10.1.1.2", action: "prohibit" }];
  expect((await wayWith(refusing(50))).way.there).toMatchObject({ is: "none", rule: { text: "from 10.1.1.2 prohibit", priority: 50 } });
  expect((await wayWith(refusing(32_767))).way.there).toMatchObject({ is: "way" });
});

it("what the reverse path filter drops where it comes in goes nowhere", async () => {
  const { way } = await wayWith([], { code: 2, stdout: "", stderr: "RTNETLINK answers: Invalid cross-device link" });
  expect(way).toMatchObject({ there: { is: "none", why: "rp_filter" }, back: undefined });
});
