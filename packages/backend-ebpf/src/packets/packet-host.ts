import { placeOf } from "../hooks.ts";
import { FILTER } from "../attach/attached.ts";
import { filtersOf } from "../host-look.ts";
import type { LookWorld } from "../host-look.ts";
import { NftHost } from "./nft-host.ts";
import type { TableObject } from "../objects.ts";
import { findPacketSupport } from "./packet-support.ts";
import type { PacketSupport } from "./packet-support.ts";
import type { EbpfWorld } from "../world.ts";

/** What packets need of this host beside maps and links. */
export class PacketHost {
  /** Our table of nft. */
  readonly nft: NftHost;
  readonly #world: LookWorld & Pick<EbpfWorld, "exec" | "log" | "probeBpf">;
  #support: Promise<PacketSupport> | undefined;

  constructor(world: LookWorld & Pick<EbpfWorld, "exec" | "log" | "probeBpf">) {
    this.#world = world;
    this.nft = new NftHost(world);
  }

  /** Look again where packets could not be served, e.g. since a module was missing; whether they can be served now. */
  async lookAgain(signal: AbortSignal): Promise<boolean> {
    if (!(await this.isServed(signal))) this.#support = undefined;
    return await this.isServed(signal);
  }

  /** What this host has, as it was looked for last. */
  support(signal: AbortSignal): Promise<PacketSupport> {
    this.#support ??= findPacketSupport(this.#world, signal).catch((error: unknown) => {
      this.#support = undefined;
      throw error;
    });
    return this.#support;
  }

  /** Whether packets are served here. */
  async isServed(signal: AbortSignal): Promise<boolean> {
    return (await this.support(signal)).problems.length === 0;
  }

  /** The table as it is; undefined: there is none, or no nft. */
  async table(signal: AbortSignal): Promise<TableObject | undefined> {
    return (await this.isServed(signal)) ? await this.nft.read() : undefined;
  }

  /** Remove filters of clsact, and the table. Pins are another matter. @throws {ProxyError} */
  async remove(signal: AbortSignal): Promise<void> {
    const { byClsact } = await this.support(signal);
    for (const key of byClsact ? (await filtersOf([], "", this.#world)).keys() : []) {
      const place = placeOf(key);
      if (place !== undefined) this.#world.bpf.detachClsact(place, FILTER);
    }
    await this.nft.drop();
  }
}
