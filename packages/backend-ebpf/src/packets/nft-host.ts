import { OwnCommits } from "@turnout/host";
import type { EchoCount, LinuxWorld, NftTableChain } from "@turnout/host";
import { dropNftTable, NftSession } from "@turnout/host/nft";
import { NFT_TABLE, readNftTable, renderNftTable } from "./nft-table.ts";
import type { TableObject } from "../objects.ts";

/** Our table of nft on this host. */
export class NftHost {
  readonly #netlink: LinuxWorld["netlink"];
  readonly #own = new OwnCommits();
  readonly #session: NftSession;

  constructor({ exec, log, netlink }: Pick<LinuxWorld, "exec" | "log" | "netlink">) {
    this.#netlink = netlink;
    this.#session = new NftSession({ exec, log, own: this.#own, table: `inet ${NFT_TABLE}` }, "nft");
  }

  /** Our commits whose echoes from the kernel are still to come. */
  get echoes(): EchoCount {
    return this.#session.echoes;
  }

  /** The table as it is; undefined: there is none. @throws {ProxyError} */
  async read(): Promise<TableObject | undefined> {
    const table = await this.#netlink.nftTable("inet", NFT_TABLE, () => {
      const chains = new Map<string, NftTableChain>();
      return { chains, set: () => undefined, chain: (name: string, chain: NftTableChain) => void chains.set(name, chain) };
    });
    return table && readNftTable(table.chains);
  }

  /** Make it anew. @throws {ProxyError} what nft complained about. */
  write(signal: AbortSignal): Promise<void> {
    return this.#session.commit(renderNftTable(), signal);
  }

  /** Remove it, if it is there. @throws {ProxyError} */
  drop(): Promise<void> {
    return dropNftTable({ own: this.#own, netlink: this.#netlink }, "inet", NFT_TABLE);
  }

  close(): void {
    this.#session.close();
  }
}
