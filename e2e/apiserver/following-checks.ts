import { readFile } from "node:fs/promises";
import type { NodeProcess } from "@turnout/lab";
import { foundIn, ShopWorld } from "./shop-world.ts";
import type { ApiServerStage } from "./stage.ts";
import { until } from "./until.ts";

/** Tries come each 7.5 s at the latest; the machine may be busy. */
const WAIT_MS = 60_000;
const AWAY_MS = 5_000;
/** A watch that lived so long counts as one that works: a server that forgets again at once is asked for everything only after a wait. */
const STEADY_MS = 5_500;
const MORE_ADDRESSES = "10.97.0.0/24";

/** Turnout follows Services while what it follows is changed, killed, compacted. */
export class Following {
  readonly #stage: ApiServerStage;
  readonly #world: ShopWorld;
  readonly #turnout: NodeProcess;

  private constructor(stage: ApiServerStage, world: ShopWorld, turnout: NodeProcess) {
    this.#stage = stage;
    this.#world = world;
    this.#turnout = turnout;
  }

  static async start(stage: ApiServerStage): Promise<Following> {
    return new Following(stage, await ShopWorld.create(stage.api), await stage.turnout());
  }

  /** What the proxy wrote. */
  get log(): string {
    return this.#turnout.log();
  }

  async create(): Promise<string> {
    await this.#world.add(200);
    return await this.#active();
  }

  async change(): Promise<string> {
    await this.#world.change(100);
    return await this.#active();
  }

  async killed(): Promise<string> {
    const { plane } = this.#stage;
    await plane.kill();
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
    let before: string;
    try {
      // The rules stay meanwhile.
      before = await this.#active();
    } finally {
      await plane.start();
    }
    await this.#world.change(40);
    const after = await this.#active();
    // Each kind of objects is followed again, ServiceCIDRs too: an API server that has just started may have forbidden them.
    const cidr = { metadata: { name: "more" }, spec: { cidrs: [MORE_ADDRESSES] } };
    await this.#stage.api.send([{ method: "POST", path: "/apis/networking.k8s.io/v1/servicecidrs", body: cidr }]);
    const ms = await until(`the rules know ${MORE_ADDRESSES}`, WAIT_MS, async () => (await this.#ruleset()).includes(MORE_ADDRESSES));
    return `${before}, away; ${after} after that; a ServiceCIDR after ${(ms / 1_000).toFixed(1)} s`;
  }

  /** The node is cut off while what it knows the place of is forgotten, so that its watches are refused with 410 Gone. */
  async compacted(): Promise<string> {
    const { plane } = this.#stage;
    const before = this.#relists();
    await new Promise((resolve) => setTimeout(resolve, STEADY_MS));
    await this.#cutOff(true);
    await this.#world.change(60);
    await this.#world.add(10);
    const revision = await plane.compact();
    await plane.kill();
    await plane.start();
    await this.#cutOff(false);
    const seen = await this.#active();
    await until("a watch is answered with 410", WAIT_MS, () => this.#relists() > before);
    return `${seen}; etcd compacted at ${revision}`;
  }

  /** Compaction below a watch that is open changes nothing for it. */
  async compactedBelow(): Promise<string> {
    await this.#stage.plane.compact();
    await this.#world.change(20);
    return await this.#active();
  }

  /** A new process finds nothing to write. */
  async again(): Promise<string> {
    await this.#turnout.end("SIGTERM");
    const dry = await this.#stage.turnout(["--once", "--dry-run"]);
    const { code } = await dry.ended();
    const plan = dry
      .log()
      .split("\n")
      .filter((line) => /^(add|delete|flush|destroy|create|insert)/.test(line));
    if (code !== 0 || plan.length > 0)
      throw new Error(`it ended with ${String(code)}, and would write ${plan.slice(0, 5).join("; ")} ${dry.log().slice(-500)}`);
    return `nothing to write over ${this.#world.wanted.length} addresses`;
  }

  /** Nothing that Turnout asked was forbidden. Tells what it asked, and what kube-proxy did. */
  async rights(): Promise<string> {
    const { plane, turnoutNode, kubeProxyNode } = this.#stage;
    const entries = (await readFile(plane.auditLog, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as AuditEntry);
    const askedFrom = (ip: string): readonly AuditEntry[] =>
      entries.filter(({ sourceIPs, user }) => sourceIPs.includes(ip) && user.username === "system:kube-proxy");
    const ours = askedFrom(turnoutNode.address("IPv4"));
    const isReady = (text: string): boolean =>
      plane.unready.every(({ fromMs, toMs }) => Date.parse(text) < fromMs || Date.parse(text) > toMs);
    const refused = ours.filter(
      ({ responseStatus, requestReceivedTimestamp }) => [401, 403].includes(responseStatus?.code ?? 0) && isReady(requestReceivedTimestamp),
    );
    if (ours.length === 0 || refused.length > 0) throw new Error(`${ours.length} requests, refused: ${kinds(refused)}`);
    return `${ours.length} requests\n${kinds(ours)}\nkube-proxy:\n${kinds(askedFrom(kubeProxyNode.address("IPv4")))}`;
  }

  /** End the node's connections to the API server, and refuse new ones, or no longer. */
  async #cutOff(isCut: boolean): Promise<void> {
    const { fabric, turnoutNode } = this.#stage;
    const rule = `ip saddr ${turnoutNode.address("IPv4")} tcp dport 6443 reject with tcp reset`;
    const make = `table ip cut { chain in { type filter hook input priority 0; ${rule}; }; }`;
    await fabric.run("nft", [isCut ? make : "delete table ip cut"]);
  }

  async #ruleset(): Promise<string> {
    const { stdout } = await this.#stage.turnoutNode.run("nft", ["list", "ruleset"]);
    return stdout;
  }

  #relists(): number {
    return this.log.split("listing again").length - 1;
  }

  async #active(): Promise<string> {
    const wanted = this.#world.wanted.join("\n");
    let found = "";
    const ms = await until("rules are as wanted", WAIT_MS, async () => {
      found = foundIn(await this.#ruleset(), "10.96.0.1").join("\n");
      return found === wanted;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${difference(found, wanted)}`, { cause: error });
    });
    return `${wanted.split("\n").length} addresses right ${(ms / 1_000).toFixed(1)} s after the last write`;
  }
}

interface AuditEntry {
  readonly verb: string;
  readonly requestURI: string;
  readonly sourceIPs: readonly string[];
  readonly user: { readonly username: string };
  readonly requestReceivedTimestamp: string;
  readonly responseStatus?: { readonly code: number };
}

/** Each kind of request once, without revisions and times. */
function kinds(entries: readonly AuditEntry[]): string {
  const lines = entries.map(({ verb, requestURI, responseStatus }) => {
    const url = new URL(requestURI, "http://x");
    for (const name of ["resourceVersion", "timeoutSeconds", "timeout"]) url.searchParams.delete(name);
    return `  ${verb} ${url.pathname}?${decodeURIComponent(url.searchParams.toString())} ${String(responseStatus?.code)}`;
  });
  return [...new Set(lines)].toSorted().join("\n");
}

function difference(found: string, wanted: string): string {
  const [has, should] = [found.split("\n"), wanted.split("\n")];
  const missing = should.filter((line) => !has.includes(line));
  const excess = has.filter((line) => !should.includes(line));
  return `missing ${missing.slice(0, 5).join(", ")}; too many ${excess.slice(0, 5).join(", ")}`;
}
