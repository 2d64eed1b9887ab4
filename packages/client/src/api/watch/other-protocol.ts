import { ProxyError, type ChangeSet, type Clock, type IPFamily, type Log, type NodeSettings } from "@turnout/core";
import type { Eligibility } from "../eligibility.ts";
import type { TlsFiles } from "./target.ts";

/** Whom to ask, and for whom. */
export interface OtherProtocolOptions {
  readonly target: string;
  readonly tls: TlsFiles | undefined;
  readonly nodeName: string;
  readonly settings: NodeSettings;
  readonly bindAddress: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** There may be something to {@link OtherProtocol.pull}. */
  readonly onNews: () => void;
}

/** A protocol of servers that don't speak the node-state API. */
export interface OtherProtocol {
  /** Whether load balancers should send the node traffic, as far as the protocol says. */
  readonly eligibility: Eligibility;
  /** Follow until the stream ends; resolves to why: `host_unsupported` when the server doesn't speak it. */
  follow(signal: AbortSignal): Promise<ProxyError>;
  /** What changed in a family since the last call; the first is full. */
  pull(family: IPFamily): ChangeSet | undefined;
  /** Want everything of a family with the next change set. */
  askFull(family: IPFamily): void;
  /** The server speaks the node-state API now. */
  rest(): void;
  /** Free what was received. */
  close(): void;
}

/** The package that speaks kpng's protocols. It imports this one, so that it is loaded by name, where it is installed. */
const KPNG: string = "@turnout/kpng";

/** Make a link that speaks kpng's protocols. @throws {ProxyError} `tool_missing` where the package is not installed. */
export async function openOtherProtocol(options: OtherProtocolOptions): Promise<OtherProtocol> {
  try {
    const { createKpngLink } = (await import(KPNG)) as { createKpngLink(options: OtherProtocolOptions): OtherProtocol };
    return createKpngLink(options);
  } catch (error) {
    throw ProxyError.from(error, "tool_missing", `kpng's protocols need ${KPNG}, which can't be loaded`, {
      object: options.target,
      hint: `if this is a kpng server: npm install ${KPNG}`,
    });
  }
}
