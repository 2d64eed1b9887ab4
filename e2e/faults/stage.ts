import type { Answer, IPFamily } from "@turnout/core";
import type { Place } from "@turnout/lab";
import { TURNOUT } from "../proxy.ts";
import { CLUSTER_CIDR, createSite, HOST_PORT } from "../site.ts";
import type { Site, SiteOptions } from "../site.ts";
import type { TestService } from "../services.ts";
import type { CaseWorld } from "./cases.ts";
import type { FaultQuestion } from "./fault.ts";
import { applyObjects } from "./objects.ts";

/** Services of the laboratory that work. */
const SERVICES = ["web", "local", "here", "internal", "affine", "ranged", "remote", "hairpin", "self"] as const;

/** A site with services that work, and a proxy on node1 that can be asked. */
export interface FaultStage extends CaseWorld {
  readonly site: Site;
  /** Flags of the proxy on node1. */
  readonly proxyFlags: readonly string[];
  /** Ask the command, which asks the running proxy, or (`isStandalone`) reads everything by itself. */
  ask(question: FaultQuestion, isStandalone?: boolean): Promise<Answer>;
  /** Run shell commands at a place; default node1. They name the tools of the nf_tables variant, and are run with those that the host has. */
  shell(script: string, at?: string): Promise<void>;
  destroy(): Promise<void>;
}

const ALLOWED = "198.51.100.0/24,192.0.2.0/25,10.96.0.0/16,172.18.0.0/24,fd00:198::/64";
/** Flags of the proxy: addresses of 192.0.2.128/25 are not allowed. */
const FLAGS: readonly string[] = [...CLUSTER_CIDR, "--allowed-external-ip-cidrs", ALLOWED];

/** The backend whose kernel only a guest has, where there is no nft, and so one iptables. */
export const VM_BACKEND = "ipvs";
/** The backend `iptables` with legacy tools, on a host that has no others. */
const LEGACY_IPTABLES = "iptables-legacy";
const APART: Readonly<Record<string, Partial<SiteOptions>>> = {
  ebpf: { cgroups: ["node1"], isInParts: true },
  [VM_BACKEND]: { isInParts: true },
};

function isLegacy(ran: string): boolean {
  return ran === VM_BACKEND || ran === LEGACY_IPTABLES;
}

function backendOf(ran: string): string {
  return ran === LEGACY_IPTABLES ? "iptables" : ran;
}

function backendFlags(ran: string): readonly string[] {
  return ["--backend", backendOf(ran), ...(isLegacy(ran) ? ["--backend-option", "variant=legacy"] : [])];
}

/** Ask about packets on a site that is there already, whose proxy has these flags, and where one Service serves for all. */
export function askOn(site: Site, backend: string, flags: readonly string[], service: TestService): FaultStage {
  return stageOf(site, Object.fromEntries(SERVICES.map((name) => [name, service])), backend, flags);
}

/** Build the stage. `played`: a backend, or {@link LEGACY_IPTABLES}. */
export async function createFaultStage(ran: string): Promise<FaultStage> {
  const flags = [...FLAGS, ...backendFlags(ran)];
  const site = await createSite({ proxied: ["node1"], layout: "one process", flags, ...APART[ran] });
  try {
    const both = ["pod-1-1", "pod-2-1"];
    const services = await site.services.createAll({
      web: { endpoints: both },
      local: { endpoints: both, fields: { externalTrafficPolicy: "Local" } },
      here: { endpoints: ["pod-1-1"] },
      internal: { endpoints: both, fields: { internalTrafficPolicy: "Local" } },
      affine: { endpoints: both, fields: { affinitySeconds: 600 } },
      ranged: { endpoints: both, fields: { sourceRanges: ["203.0.113.0/24", "fd00:203::/64"] } },
      remote: { endpoints: ["pod-2-1"] },
      hairpin: { endpoints: ["pod-1-2"] },
      self: { endpoints: ["node1"], targetPort: HOST_PORT },
    });
    const stage = stageOf(site, services, ran, FLAGS);
    await applyObjects(site, stage);
    await site.waitForSync();
    return stage;
  } catch (error) {
    await site.destroy();
    throw error;
  }
}

function stageOf(site: Site, services: FaultStage["services"], ran: string, flags: readonly string[]): FaultStage {
  const node1 = site.place("node1");
  return {
    site,
    services,
    backend: backendOf(ran),
    flags,
    proxyFlags: [...flags, ...backendFlags(ran)],
    ask: async (question, isStandalone = false) => {
      const { from, to, port, protocol = "TCP", device, isProbed, standaloneWith } = located(site, question);
      const target = `${to.includes(":") ? `[${to}]` : to}:${port}`;
      const source = ["--source", "kube", "--kubeconfig", site.kubeconfig, ...backendFlags(ran)];
      const standalone = [...source, "--node-name", "node1", ...flags];
      const args = [
        "why",
        from,
        target,
        "--protocol",
        protocol,
        "-o",
        "json",
        ...(device === undefined ? [] : ["--in", device]),
        ...(isProbed === true ? ["--probe"] : []),
        ...(standaloneWith === undefined ? (isStandalone ? standalone : []) : [...source, ...standaloneWith]),
      ];
      return parsed(await patiently(() => output(node1, TURNOUT, args)), question);
    },
    shell: async (script, at = "node1") =>
      void (await site.place(at).run("sh", ["-ec", isLegacy(ran) ? script.replaceAll("tables-nft", "tables-legacy") : script])),
    destroy: () => site.destroy(),
  };
}

const TRIES = 12;

/** A proxy in a guest, whose one CPU a busy machine shares out, may not answer in the time that the command gives it. */
async function patiently(ask: () => Promise<string>): Promise<string> {
  for (let tries = 1; ; tries++) {
    const text = await ask();
    if (!text.startsWith("turnout: [timed_out]") || tries === TRIES) return text;
  }
}

/** What a program prints, whatever its exit code: an answer with a culprit is one of 1. */
async function output(place: Place, file: string, args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await place.run("sh", ["-c", '"$@" || :', "sh", file, ...args]);
  return stdout === "" ? stderr : stdout;
}

function parsed(text: string, question: FaultQuestion): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch (error) {
    throw new Error(`no answer to ${JSON.stringify(question)}: ${text.slice(0, 500)}`, { cause: error });
  }
}

/** Names of places stand for their addresses, of the family of what is asked for. */
function located(site: Site, question: FaultQuestion): FaultQuestion {
  const family: IPFamily = question.to.includes(":") ? "IPv6" : "IPv4";
  const { from } = question;
  const address = from === "host" ? site.place("node1").address(family) : /[.:]/.test(from) ? from : site.place(from).address(family);
  return { ...question, from: address };
}
