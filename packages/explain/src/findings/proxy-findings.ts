import type { Finding } from "./finding.ts";
import type { ExternalTable } from "@turnout/host/rules";
import type { HostSurvey } from "../readings/survey.ts";
import type { Writer } from "../readings/writers.ts";

/** What is said of service proxies on one host, and of iptables' two variants. Pure. */
export function proxyFindings(survey: HostSurvey): readonly Finding[] {
  return [...kubeProxy(survey), ...twice(survey), ...stopped(survey), ...mixed(survey), ...others(survey)];
}

function seen({ traces }: Writer): string {
  return traces.join(", ");
}

function kubeProxy({ writers }: HostSurvey): readonly Finding[] {
  const other = writers.find(({ name }) => name === "kube-proxy");
  const ours = writers.find(({ name }) => name === "Turnout");
  if (other === undefined) return [];
  if (other.isRunning && ours !== undefined)
    return [
      {
        id: "two-proxies",
        severity: "fault",
        what: "two service proxies write rules on this host: they undo each other's work, and packets go by the rules of one or the other",
        because: `kube-proxy: ${seen(other)}; Turnout: ${seen(ours)}`,
        fix: "stop one of them: kubectl -n kube-system delete daemonset kube-proxy, or turnout cleanup once Turnout is stopped",
      },
    ];
  if (other.isRunning)
    return [
      {
        id: "kube-proxy-serves",
        severity: "note",
        what: "kube-proxy serves this host",
        because: seen(other),
        fix: 'to move over, see docs/operations.md, "Moving over": Turnout goes on from its rules, and they stay until Turnout\'s are in force',
      },
    ];
  return [
    {
      id: "kube-proxy-leftover",
      severity: ours === undefined ? "risk" : "fault",
      what: "rules of kube-proxy decide about packets, and no kube-proxy is seen here that keeps them up to date",
      because: seen(other),
      fix: "turnout run removes or adopts them once its own rules are in force; turnout run --cleanup removes all rules of kube-proxy and Turnout",
    },
  ];
}

function twice({ writers }: HostSurvey): readonly Finding[] {
  const processes = writers.find(({ name }) => name === "Turnout")?.traces.filter((trace) => trace.startsWith("process ")) ?? [];
  if (processes.length < 2) return [];
  return [
    {
      id: "turnout-twice",
      severity: "fault",
      what: "several Turnouts write rules in this network namespace: they undo each other's work unless they want the same",
      because: processes.join(", "),
      fix: "stop all but one",
    },
  ];
}

/** A stopped process holds its ports and rules, and does nothing. */
function stopped({ writers }: HostSurvey): readonly Finding[] {
  return writers
    .filter((writer) => (writer.name === "Turnout" || writer.name === "kube-proxy") && writer.stopped.length > 0)
    .map((writer) => ({
      id: "proxy-stopped",
      severity: "fault",
      what: `${writer.name} is stopped (SIGSTOP): no change of a Service or endpoint comes into force, and its rules are not repaired`,
      because: `/proc/${writer.stopped.join(", ")}/status: State T`,
      fix: `see who stopped it; kill -CONT ${writer.stopped.join(" ")} has it go on`,
    }));
}

function mixed({ iptables, external }: HostSurvey): readonly Finding[] {
  const withRules = external.filter(
    ({ tool, chains }) => tool !== "nft" && [...chains.values()].some(({ rules, hook }) => rules.length > 0 || hook?.policy === "drop"),
  );
  const isLegacy = ({ tool }: ExternalTable): boolean => tool.endsWith("-legacy");
  const [legacy, nft] = [withRules.filter(isLegacy), withRules.filter((table) => !isLegacy(table))];
  if (legacy.length === 0 || nft.length === 0) return [];
  const hasServices = (wanted: string): boolean =>
    iptables.some(({ variant, names }) => variant === wanted && names.includes("KUBE-SERVICES"));
  const named = (tables: typeof withRules): string =>
    tables.map(({ tool, place }) => `${tool.startsWith("ip6") ? "ip6" : "ip"} ${place}`).join(", ");
  const isFault = hasServices("legacy") && hasServices("nft");
  return [
    {
      id: "iptables-mixed",
      severity: isFault ? "fault" : "risk",
      what: isFault
        ? "both variants of iptables hold rules for Services: packets go by the older ones in one of them"
        : "both variants of iptables hold rules, and the kernel obeys both: what one lets through the other may drop",
      because: `legacy: ${named(legacy)}; nf_tables: ${named(nft)}`,
      fix: "have kubelet, network plugin and proxy use one variant (update-alternatives --config iptables), then reboot, or flush the other one",
    },
  ];
}

function others({ writers, virtualServers }: HostSurvey): readonly Finding[] {
  const findings: Finding[] = [];
  const cilium = writers.find(({ name }) => name === "Cilium");
  if (cilium?.isRunning === true)
    findings.push({
      id: "cilium",
      severity: "note",
      what: "Cilium may serve Services itself, at sockets and devices, before any rule of Turnout",
      because: seen(cilium),
      fix: "look for KubeProxyReplacement in cilium status: where it is true, no other service proxy is needed",
    });
  const isExplained = writers.some(
    ({ name }) => name === "Turnout" || name === "kube-proxy" || name === "keepalived" || name === "kube-router",
  );
  if (virtualServers !== undefined && !isExplained)
    findings.push({
      id: "ipvs-in-use",
      severity: "risk",
      what: "IPVS serves addresses on this host, and no program is seen that keeps them up to date",
      because: `${virtualServers} virtual servers`,
      fix: "ipvsadm -Ln shows them; ipvsadm -C removes them all",
    });
  return findings;
}
