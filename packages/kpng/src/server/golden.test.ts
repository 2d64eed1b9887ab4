import { readFileSync } from "node:fs";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "../link/paths.ts";
import { rawNode, rawService, rawSlice, upsertRaw } from "@turnout/core/testing";
import { describe, expect, test } from "vitest";
import { TestStateServer } from "../test-support/state-server.ts";

let stateServer: TestStateServer;

/** A stream as it is written down: who says what, in hex. */
function streamOf(file: string): readonly { readonly isRequest: boolean; readonly hex: string }[] {
  const text = readFileSync(new URL(`../../test/golden/streams/${file}`, import.meta.url), "utf8");
  return text
    .split(/^(?=[<>] )/m)
    .slice(1)
    .map((block) => {
      const hex = block.split("\n").filter((line) => /^[0-9a-f]+$/.test(line));
      return { isRequest: block.startsWith(">"), hex: hex.join("") };
    });
}

const dbPorts = { ports: [{ name: "", port: 5433 }] };
const webPorts = [
  { name: "http", port: 8080 },
  { name: "dns", port: 1053, protocol: "UDP" },
];

function db(...ips: readonly string[]): void {
  upsertRaw(
    stateServer.store,
    rawSlice(
      "db",
      ips.map((ip) => ({ ip, node: "node2" })),
      dbPorts,
    ),
  );
}

/** The store of both streams. */
function fill(): void {
  const { store } = stateServer;
  upsertRaw(store, rawNode("node1", { zone: "a" }));
  upsertRaw(store, rawService("db", { clusterIP: "10.96.0.20", ports: [{ port: 5432, targetPort: 5433 }] }));
  db("10.1.2.20", "10.1.2.21");
  const web = {
    type: "LoadBalancer",
    clusterIP: "10.96.0.10",
    clusterIPs: ["10.96.0.10", "fd00:96::10"],
    externalIPs: ["192.0.2.10"],
    ports: [
      { name: "dns", port: 53, protocol: "UDP", nodePort: 30_053 },
      { name: "http", port: 80, nodePort: 30_080 },
    ],
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32_000,
    loadBalancerSourceRanges: ["203.0.113.0/24"],
    sessionAffinity: "ClientIP",
  };
  upsertRaw(store, rawService("web", web, { ingress: [{ ip: "198.51.100.9" }, { ip: "198.51.100.10" }] }));
  const pods = (prefix: (node: number) => string): readonly { ip: string; node: string; pod: string }[] => [
    { ip: prefix(1), node: "node1", pod: "web-a" },
    { ip: prefix(2), node: "node2", pod: "web-b" },
  ];
  upsertRaw(
    store,
    rawSlice(
      "web",
      pods((node) => `10.1.${node}.10`),
      { ports: webPorts },
    ),
  );
  upsertRaw(
    store,
    rawSlice(
      "web",
      pods((node) => `fd00:${node}::10`),
      { name: "web-2", addressType: "IPv6", ports: webPorts },
    ),
  );
}

describe("whole streams", () => {
  test.each([
    ["local-stream.txt", LOCAL_WATCH_PATH],
    ["global-stream.txt", GLOBAL_WATCH_PATH],
  ])("%s is said byte for byte", async (file, path) => {
    const golden = streamOf(file);
    stateServer = await TestStateServer.start();
    fill();
    const watcher = stateServer.open(path);
    let asked = 0;
    for (const { isRequest, hex } of golden) {
      if (!isRequest) continue;
      asked += 1;
      watcher.send(Buffer.from(hex, "hex"));
      if (asked === 2) {
        db("10.1.2.22");
        stateServer.store.remove("Service", "shop", "web");
      }
      await watcher.changes();
    }
    const said = watcher.messages.map((bytes) => bytes.toString("hex"));
    expect(said).toEqual(golden.filter(({ isRequest }) => !isRequest).map(({ hex }) => hex));
  });
});
