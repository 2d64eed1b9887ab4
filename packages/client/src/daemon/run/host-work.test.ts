import type { BackendModule } from "@turnout/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ToyProxy } from "../../test-support/toy-proxy.ts";
import { flushPromises, toyChange, toyEndpoint, toyModule, toyRow } from "../../test-support/toys.ts";
import type { HostAccess } from "../host/give-up-rights.ts";
import type { ProcessMemory } from "../host/process-memory.ts";

let proxy: ToyProxy;

beforeEach(() => {
  proxy = new ToyProxy();
});

afterEach(() => proxy.end());

const OOM = "/proc/self/oom_score_adj";
const CLOSE_WAIT = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait";

/** A backend that notes when it is asked for what, and a host that notes what is done to it; conntrack is loaded by the first rule. */
function notedRun(overrides: Partial<BackendModule> = {}): { notes: string[]; module: BackendModule; host: HostAccess } {
  const notes: string[] = [];
  const inner = toyModule(proxy.kernel);
  const texts: Record<string, string> = { [OOM]: "0" };
  const module: BackendModule = {
    ...inner,
    rights: { CAP_NET_ADMIN: "do it" },
    probe: (...args) => (notes.push("probe"), inner.probe(...args)),
    open: (...args) => {
      notes.push("open");
      texts[CLOSE_WAIT] = "60";
      return inner.open(...args);
    },
    ...overrides,
  };
  const host: HostAccess = {
    files: {
      cores: 1,
      read: (path) => {
        if (texts[path] !== undefined) return texts[path];
        throw Object.assign(new Error("ENOENT"), { code: "ENOENT", syscall: "open" });
      },
      write: (path, text) => void notes.push(`${path.split("/").at(-1)}=${(texts[path] = text)}`),
      open: () => undefined,
    },
    rights: {
      held: () => ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"],
      without: (_names, look) => look(),
      keep: (names) => Promise.resolve(void notes.push(`keep ${names.join(" ")}`)),
    },
    paths: [],
  };
  return { notes, module, host };
}

const leftovers = { others: () => Promise.resolve([]), isKept: false, rights: { CAP_NET_RAW: "look" } } as const;

test("the host is set before it is looked at, rights go before the backend is opened, and the rest is done when the rules are in force", async () => {
  const { notes, module, host } = notedRun();
  void proxy.start({ host, leftovers }, module);
  await flushPromises();
  expect(notes).toEqual(["oom_score_adj=-999", "probe", "keep CAP_NET_ADMIN CAP_NET_RAW", "open"]);
  proxy.pushBoth();
  await flushPromises();
  expect(notes.slice(4)).toEqual(["nf_conntrack_tcp_timeout_close_wait=3600", "keep CAP_NET_ADMIN"]);
});

test.each([
  ["in a dry run", { dryRun: (): void => undefined }],
  ["by a one-time sync", { once: true }],
])("nothing is set and nothing given up %s", async (_name, options) => {
  const { notes, module, host } = notedRun();
  proxy.pushBoth();
  void proxy.start({ host, leftovers, ...options }, module);
  await flushPromises();
  expect(notes).toEqual(["probe", "open"]);
});

test("where rules live with the process nothing is set, and rights are given up", async () => {
  const { notes, module, host } = notedRun({ residence: "process" });
  void proxy.start({ host, leftovers }, module);
  await flushPromises();
  expect(notes).toEqual(["probe", "keep CAP_NET_ADMIN CAP_NET_RAW", "open"]);
});

/** Memory of a process that notes when some is given back, and then has 80 MB. */
function notedMemory(): { notes: number[]; memory: ProcessMemory & { bytes: number } } {
  const notes: number[] = [];
  const memory = {
    bytes: 100e6,
    residentBytes: () => memory.bytes,
    giveBack: () => {
      notes.push(proxy.world.clock.nowMs());
      memory.bytes = 80e6;
    },
  };
  return { notes, memory };
}

test("memory of the start is given back once, some seconds after the rules of both families are in force", async () => {
  const { module, host } = notedRun();
  const { notes, memory } = notedMemory();
  void proxy.start({ host: { ...host, memory }, leftovers }, module);
  await proxy.world.clock.advance(10_000);
  proxy.pushBoth();
  await proxy.world.clock.advance(2_999);
  expect(notes).toEqual([]);
  await proxy.world.clock.advance(1);
  expect(notes).toHaveLength(1);
  memory.bytes += 15e6;
  await proxy.world.clock.advance(600_000);
  expect(notes).toHaveLength(1);
});

test("memory is given back again after much work, when nothing was synced for five seconds", async () => {
  const { module, host } = notedRun();
  const { notes, memory } = notedMemory();
  void proxy.start({ host: { ...host, memory }, leftovers }, module);
  proxy.pushBoth();
  await proxy.world.clock.advance(60_000);
  expect(notes).toHaveLength(1);
  memory.bytes += 17e6;
  for (let change = 0; change < 20; change++) {
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("cart", { endpoints: [toyEndpoint(`10.1.0.${change}`)] })] }));
    await proxy.world.clock.advance(2_000);
  }
  expect(notes).toHaveLength(1);
  await proxy.world.clock.advance(10_000);
  expect(notes).toHaveLength(2);
});

test("a proxy that is stopped before that gives nothing back", async () => {
  const { module, host } = notedRun();
  const { notes, memory } = notedMemory();
  void proxy.start({ host: { ...host, memory }, leftovers }, module);
  proxy.pushBoth();
  await flushPromises();
  await proxy.end();
  await proxy.world.clock.advance(600_000);
  expect(notes).toEqual([]);
});
