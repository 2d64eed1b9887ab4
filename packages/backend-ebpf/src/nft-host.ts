import type { World } from "@turnout/core/backend";
import { OwnCommits } from "@turnout/host";
import type { EchoCount } from "@turnout/host";
import { NftSession, readListing } from "@turnout/host/nft";
import { NFT_TABLE, readNftTable, renderNftTable } from "./nft-table.ts";
import type { TableObject } from "./objects.ts";

/** Our table of nft on this host. */
export class NftHost {
  readonly #session: NftSession;

  constructor({ exec }: Pick<World, "exec">) {
    this.#session = new NftSession({ exec, own: new OwnCommits() }, "nft");
  }

  /** Our commits whose echoes from the kernel are still to come. */
  get echoes(): EchoCount {
    return this.#session.echoes;
  }

  /** The table as it is; undefined: there is none. @throws {ProxyError} */
  async read(signal: AbortSignal): Promise<TableObject | undefined> {
    const text = await this.#session.listTable("inet", NFT_TABLE, signal);
    return text === undefined ? undefined : readNftTable(readListing(text));
  }

  /** Make it anew. @throws {ProxyError} what nft complained about. */
  write(signal: AbortSignal): Promise<void> {
    return this.#session.commit(renderNftTable(), signal);
  }

  /** Remove it, if it is there. @throws {ProxyError} */
  drop(signal: AbortSignal): Promise<void> {
    return this.#session.dropTable("inet", NFT_TABLE, signal);
  }

  close(): void {
    this.#session.close();
  }
}
