import type { Packet } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import type { Hook } from "./hooks.ts";
import type { UndoLog } from "./undo-log.ts";

const PROTOCOL_NUMBERS: Readonly<Record<Packet["protocol"], string>> = { TCP: "6", UDP: "17", SCTP: "132" };
/** Conntrack's bits for a connection that is new, and one whose destination or source was rewritten. */
const CT_NEW = 8;
const CT_SNAT = 16;
const CT_DNAT = 32;

/** What a walk needs to know of the host. */
export interface WalkHost {
  isLocal(address: string): boolean;
  /** In [0, 1). */
  random(): number;
  readonly nowMs: number;
  /** Takes down what the packet leaves in dynamic sets. */
  readonly undo: UndoLog;
}

/** The first packet of a connection on its way, as rules see and change it. */
export class Walk {
  readonly family: "ip" | "ip6";
  readonly protocol: string;
  readonly protocolNumber: string;
  readonly sourcePort = 40_000;
  readonly isLocal: (address: string) => boolean;
  readonly random: () => number;
  readonly nowMs: number;
  /** The way it took, for people. */
  readonly path: string[] = [];
  source: string;
  destination: string;
  port: number;
  /** "" where there is none, as the kernel has it: the host's own packets came in by no link. */
  inputLink: string;
  /** "" before it is known. */
  outputLink = "";
  mark: number;
  /** Whether it has come to postrouting. */
  hasLeft = false;
  ctMark = 0;
  ctState: number = CT_NEW;
  ctStatus = 0;
  /** Takes down what the packet leaves in dynamic sets. */
  readonly undo: UndoLog;

  constructor({ family, protocol, source, destination, port, link, mark = 0 }: Packet, host: WalkHost) {
    this.family = family === ("IPv4" satisfies IPFamily) ? "ip" : "ip6";
    this.protocol = protocol.toLowerCase();
    this.protocolNumber = PROTOCOL_NUMBERS[protocol];
    this.source = source;
    this.destination = destination;
    this.port = port;
    this.inputLink = link;
    this.mark = mark;
    this.isLocal = (address): boolean => host.isLocal(address);
    this.random = (): number => host.random();
    this.nowMs = host.nowMs;
    this.undo = host.undo;
  }

  get isDestinationTranslated(): boolean {
    return (this.ctStatus & CT_DNAT) !== 0;
  }

  get isSourceTranslated(): boolean {
    return (this.ctStatus & CT_SNAT) !== 0;
  }

  /** Whether a hook's translation is decided: nat chains are asked no more. */
  isTranslatedAt(hook: Hook): boolean {
    return hook === "postrouting" || hook === "input" ? this.isSourceTranslated : this.isDestinationTranslated;
  }

  /** Set a translation up. Masquerading takes an address of the host, whose it doesn't matter. */
  translate(type: "dnat" | "snat" | "masquerade" | "redirect", address: string | undefined, port: number | undefined): void {
    if (type === "dnat" || type === "redirect") {
      this.destination = address ?? this.destination;
      this.port = port ?? this.port;
      this.ctStatus |= CT_DNAT;
    } else {
      this.source = address ?? this.source;
      this.ctStatus |= CT_SNAT;
    }
  }
}
