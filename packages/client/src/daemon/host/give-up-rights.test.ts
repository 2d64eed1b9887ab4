import { ProxyError, type Rights } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { ToyLog } from "../../test-support/toys.ts";
import { giveUpRights, type ProcessRights } from "./give-up-rights.ts";

const ALL = ["CAP_DAC_OVERRIDE", "CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SYS_ADMIN"];
const NFT: Rights = { CAP_NET_ADMIN: "program nftables" };

/** Rights in memory, and files of which some belong to others. */
class Toy implements ProcessRights {
  readonly log = new ToyLog();
  readonly kept: [process: readonly string[], children: readonly string[]][] = [];
  #off: readonly string[] = [];
  has: readonly string[];
  refusal: ProxyError | undefined;

  constructor(has: readonly string[]) {
    this.has = has;
  }

  held(): readonly string[] {
    return this.has;
  }

  without<T>(names: readonly string[], look: () => T): T {
    this.#off = names;
    try {
      return look();
    } finally {
      this.#off = [];
    }
  }

  keep(process: readonly string[], children: readonly string[]): Promise<void> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    this.kept.push([process, children]);
    return Promise.resolve();
  }

  giveUp(backend: Rights | undefined, meanwhile: Rights = {}, paths: readonly string[] = []): Promise<() => Promise<void>> {
    const open = (path: string): void => {
      const code =
        path.startsWith("/others") && this.#off.includes("CAP_DAC_OVERRIDE") ? "EACCES" : path.endsWith(".sock") ? "ENXIO" : undefined;
      if (path === "/gone") throw Object.assign(new Error("gone"), { code: "ENOENT" });
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    };
    const files = { cores: 1, read: (): string => "", write: (): void => undefined, open };
    return giveUpRights({ rights: this, files, backend, meanwhile, paths, log: this.log });
  }
}

describe("capabilities", () => {
  test("all but those that are needed go: in this process, and in its programs", async () => {
    const toy = new Toy(ALL);
    await toy.giveUp(NFT);
    expect(toy.kept).toEqual([[["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"], ["CAP_NET_ADMIN"]]]);
    expect(toy.log.lines).toEqual(["info capabilities of this process kept=CAP_NET_ADMIN, CAP_NET_BIND_SERVICE"]);
  });

  test("what former proxies' rules take goes when those are gone", async () => {
    const toy = new Toy(ALL);
    const settle = await toy.giveUp(NFT, { CAP_NET_RAW: "look at legacy iptables" });
    expect(toy.kept[0]).toEqual([
      ["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW"],
      ["CAP_NET_ADMIN", "CAP_NET_RAW"],
    ]);
    await settle();
    expect(toy.kept[1]).toEqual([["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"], ["CAP_NET_ADMIN"]]);
  });

  test("what is needed and missing is told with what that means", async () => {
    const toy = new Toy(["CAP_NET_ADMIN"]);
    await toy.giveUp({ ...NFT, CAP_SYS_ADMIN: "enter namespaces" });
    expect(toy.log.lines).toEqual(["info capabilities of this process kept=CAP_NET_ADMIN missing=CAP_SYS_ADMIN (to enter namespaces)"]);
  });

  test.each([
    ["of its own", ["/own"], false],
    ["of others", ["/own", "/others"], true],
    ["that aren't there yet, whoever will make them", ["/gone"], true],
    ["that are sockets", ["/run/node.sock"], false],
    ["that are sockets of others", ["/others/node.sock"], true],
  ])("files %s", async (_name, paths, isKept) => {
    const toy = new Toy(ALL);
    await toy.giveUp(NFT, {}, paths);
    expect(toy.kept[0]?.[0].includes("CAP_DAC_OVERRIDE")).toBe(isKept);
    expect(toy.kept[0]?.[1]).toEqual(["CAP_NET_ADMIN"]);
    expect(toy.log.lines[0]?.includes("CAP_DAC_OVERRIDE is kept for")).toBe(isKept);
  });

  test("what is kept for a while is told, and what isn't there at all needs nothing to be done", async () => {
    const toy = new Toy(ALL);
    await toy.giveUp(NFT, { CAP_NET_RAW: "look at legacy iptables" });
    expect(toy.log.lines[0]).toMatch(/kept=CAP_NET_ADMIN, CAP_NET_BIND_SERVICE meanwhile=CAP_NET_RAW, until/);
    const noOne = new Toy([]);
    await noOne.giveUp(NFT);
    expect([noOne.kept, noOne.log.lines]).toEqual([
      [],
      ["info capabilities of this process kept=none missing=CAP_NET_ADMIN (to program nftables)"],
    ]);
  });

  test("a backend that doesn't say what it needs keeps everything", async () => {
    const toy = new Toy(ALL);
    await (
      await toy.giveUp(undefined)
    )();
    expect(toy.kept).toEqual([]);
    expect(toy.log.lines).toEqual(["info all capabilities are kept: the backend does not say which it needs"]);
  });

  test("what can't be given up is told, and the process goes on", async () => {
    const toy = new Toy(ALL);
    toy.refusal = new ProxyError("permission_denied", "capabilities can't be given up (EPERM)");
    await (
      await toy.giveUp(NFT)
    )();
    expect(toy.log.lines).toEqual([expect.stringMatching(/^warn capabilities can't be given up error=\[permission_denied\]/) as unknown]);
  });
});
