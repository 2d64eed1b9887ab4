import { describe, expect, it } from "vitest";
import { listenerCauses } from "../causes/listener-causes.ts";
import { isListening } from "./listeners.ts";
import type { Listening } from "./listeners.ts";
import type { Way } from "./way.ts";

const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const line = (local: string, state: string): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0\n`;
const line6 = (local: string, state: string): string => line(local, state).replace("00000000:0000 ", `${"0".repeat(32)}:0000 `);

/** 127.0.0.1:8080, 0.0.0.0:80, and a connection from 10.0.0.1:9. */
const TCP = HEAD + line("0100007F:1F90", "0A") + line("00000000:0050", "0A") + line("0100000A:0009", "01");
/** [fd00::1]:8080, [::]:443, [::ffff:10.0.0.1]:99. */
const TCP6 =
  HEAD +
  line6("000000FD000000000000000001000000:1F90", "0A") +
  line6("00000000000000000000000000000000:01BB", "0A") +
  line6("0000000000000000FFFF00000100000A:0063", "0A");
const FILES: Readonly<Record<string, string>> = {
  "/proc/net/tcp": TCP,
  "/proc/net/tcp6": TCP6,
  "/proc/net/udp": HEAD + line("0100000A:0035", "07"),
  "/proc/net/udp6": HEAD,
};

async function asked(question: Partial<Listening>, files = FILES): Promise<boolean | undefined> {
  return await isListening(async (path) => files[path], { family: "IPv4", protocol: "TCP", ip: "10.0.0.1", port: 80, ...question });
}

describe("whether something listens", () => {
  it.each<readonly [string, Partial<Listening>, boolean | undefined]>([
    ["at every address", {}, true],
    ["at that address", { ip: "127.0.0.1", port: 8080 }, true],
    ["at another address", { port: 8080 }, false],
    ["at no address", { port: 81 }, false],
    ["a connection is no listener", { port: 9 }, false],
    ["a socket of every IPv6 address", { port: 443 }, true],
    ["a mapped address", { port: 99 }, true],
    ["UDP", { protocol: "UDP", port: 53 }, true],
    ["UDP at another port", { protocol: "UDP", port: 80 }, false],
    ["SCTP, of which nothing is known", { protocol: "SCTP" }, undefined],
    ["IPv6 at that address", { family: "IPv6", ip: "fd00::1", port: 8080 }, true],
    ["IPv6 where only IPv4 listens", { family: "IPv6", ip: "fd00::1", port: 80 }, false],
  ])("%s", async (_name, question, expected) => {
    expect(await asked(question)).toBe(expected);
  });

  it("can't be told without the kernel's list, and without IPv6 can", async () => {
    expect(await asked({}, {})).toBeUndefined();
    expect(await asked({ family: "IPv6", ip: "fd00::1" }, { "/proc/net/tcp": TCP })).toBeUndefined();
    expect(await asked({}, { "/proc/net/tcp": TCP })).toBe(true);
  });
});

describe("a packet that ends where nothing listens", () => {
  const way = (isListenedTo: boolean | undefined): Way =>
    ({ endpoint: { ip: "10.0.0.1", port: 30_999, nodeName: undefined, isLocal: true, masquerade: false }, isListenedTo }) as Way;
  const packet = { protocol: "TCP" } as never;

  it("is no Service's, or an endpoint's", () => {
    const [unowned] = listenerCauses({ packet, fate: { is: "pass" } }, way(false));
    expect(unowned).toMatchObject({ id: "unanswered", isSure: false, show: ["ss -tlnp 'sport = :30999'", "kubectl get services -A"] });
    expect(unowned?.says).toBe("no Service has 10.0.0.1:30999/TCP, and nothing on this host listens there: connections are refused");
    const [endpoint] = listenerCauses({ packet, fate: { is: "forward", endpoints: [] } }, way(false));
    expect(endpoint?.says).toBe("the endpoint 10.0.0.1:30999/TCP is on this host, and nothing listens there: connections are refused");
  });

  it("is nothing to say of where something does, or nobody can tell", () => {
    const [proxys] = listenerCauses({ packet, fate: { is: "pass" }, processFate: { is: "forward", endpoints: [] } }, way(false));
    expect(proxys?.says).toContain("where the proxy's process is to answer");
    expect(proxys).not.toHaveProperty("isSure");
    expect([
      listenerCauses({ packet, fate: { is: "pass" } }, way(true)),
      listenerCauses({ packet, fate: { is: "pass" } }, way(undefined)),
    ]).toEqual([[], []]);
  });
});
