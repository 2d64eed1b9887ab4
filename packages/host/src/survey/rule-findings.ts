import type { Finding } from "./finding.ts";
import type { IptablesTable } from "./iptables-rules.ts";
import type { ForeignChain } from "./nft-rules.ts";
import type { HostSurvey } from "./survey.ts";
import { fateOfNew, mayTranslate, sensedIptables, sensedNft } from "./verdicts.ts";
import type { SensedTable } from "./verdicts.ts";

/** The priority at which destinations are translated. @source linux/netfilter_ipv4.h NF_IP_PRI_NAT_DST */
const DSTNAT = -100;
/** Rules that are named, at most. */
const NAMED_MAX = 4;

/** What foreign rules say against a service proxy: what they drop, and what they translate first. Pure. */
export function ruleFindings(survey: HostSurvey): readonly Finding[] {
  return [...drops(survey), ...translatesFirst(survey)];
}

/** A chain that the kernel calls, of either tool. */
interface Called {
  /** E.g. `chain inet firewalld filter_FORWARD`. */
  readonly text: string;
  readonly name: string;
  readonly hook: string;
  readonly table: SensedTable;
  /** The command that lets through what was translated for a Service. */
  readonly accept: string;
}

const HOOK_OF: Readonly<Record<string, string>> = {
  PREROUTING: "prerouting",
  INPUT: "input",
  FORWARD: "forward",
  OUTPUT: "output",
  POSTROUTING: "postrouting",
};

/** What can't pass is lost: by hook, who sends or gets that. */
const CONCERNED: Readonly<Record<string, string>> = {
  prerouting: "packets that come to this host",
  input: "packets to this host itself: node ports and Services whose endpoints have its address",
  forward: "packets to endpoints in pods and on other nodes",
  output: "packets that this host sends itself",
  postrouting: "packets that leave this host, or go to its pods",
  ingress: "packets that come by a device",
};

function drops({ chains, iptables }: HostSurvey): readonly Finding[] {
  const called = [...calledByNft(chains), ...calledByIptables(iptables)].filter(({ hook }) => hook in CONCERNED);
  return called.flatMap(({ text, name, hook, table, accept }): readonly Finding[] => {
    const fate = fateOfNew(table, name);
    const isInput = hook === "input";
    // A firewall that lets some things in is what firewalls are for; of packets to pods it can't know.
    if (fate === "through" || (fate === "some" && hook !== "forward")) return [];
    const isAll = fate === "none";
    return [
      {
        id: `drops-${hook}`,
        severity: isAll && !isInput ? "fault" : "risk",
        what: isAll
          ? `another program's rules drop every new connection there: ${CONCERNED[hook] ?? hook}`
          : "another program's rules drop forwarded packets unless they know them: pods and Services are reached only where somebody told it so",
        because: `${text} ${(table.get(name)?.isDropping ?? false) ? "has the policy drop" : "ends with a rule that drops all"}`,
        mend: accept,
      },
    ];
  });
}

function calledByNft(chains: readonly ForeignChain[]): readonly Called[] {
  const tables = Map.groupBy(chains, ({ family, table }) => `${family} ${table}`);
  return Array.from(tables).flatMap(([key, all]) => {
    const table = sensedNft(all);
    return all.flatMap(({ name, base }) =>
      base === undefined || base.type !== "filter" || key.startsWith("arp ") || key.startsWith("bridge ")
        ? []
        : [
            {
              text: `chain ${key} ${name}`,
              name,
              hook: base.hook,
              table,
              accept: `nft insert rule ${key} ${name} ct status dnat accept (lets through what a Service was asked for; better: tell that firewall)`,
            },
          ],
    );
  });
}

function calledByIptables(tables: readonly IptablesTable[]): readonly Called[] {
  return tables
    .filter(({ table }) => table !== "nat")
    .flatMap(({ variant, family, table, chains, names }) => {
      const sensed = sensedIptables(chains, names);
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
      return chains.flatMap(({ name, policy }) => {
        const hook = HOOK_OF[name];
        if (policy === undefined || hook === undefined) return [];
        const accept = `${tool} -t ${table} -I ${name} -m conntrack --ctstate DNAT -j ACCEPT (lets through what a Service was asked for)`;
        return [{ text: `${tool} chain ${name} of table ${table}`, name, hook, table: sensed, accept }];
      });
    });
}

/** Who translates a packet first has it: what comes after never sees it. CVE-2019-9946, docs/security.md. */
function translatesFirst({ chains, iptables, ownHooks }: HostSurvey): readonly Finding[] {
  const ours = Math.min(
    DSTNAT,
    ...ownHooks.filter(({ type, hook }) => type === "nat" && hook === "prerouting").map(({ priority }) => priority),
  );
  const byTable = Map.groupBy(chains, ({ family, table }) => `${family} ${table}`);
  const found = [
    ...chains.flatMap(({ family, table, name, base }) => {
      if (base === undefined || base.hook !== "prerouting" || base.priority > ours) return [];
      const key = `${family} ${table}`;
      return mayTranslate(sensedNft(byTable.get(key) ?? []), name) ? [`chain ${key} ${name} (priority ${base.priority})`] : [];
    }),
    ...iptables.flatMap(({ variant, family, table, chains: all, names }) => {
      if (table !== "nat") return [];
      const sensed = sensedIptables(all, names);
      const rules = sensed.get("PREROUTING")?.rules ?? [];
      const services = rules.findIndex(({ calls }) => calls.includes("KUBE-SERVICES"));
      const before = rules.slice(0, services < 0 ? undefined : services);
      const first = before.flatMap(({ fate, calls }) =>
        fate === "translates" ? ["a rule"] : calls.filter((one) => mayTranslate(sensed, one)),
      );
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
      return first.length === 0 ? [] : [`${tool} nat PREROUTING: ${[...new Set(first)].join(", ")}`];
    }),
  ];
  if (found.length === 0) return [];
  return [
    {
      id: "translates-first",
      severity: "risk",
      what: "another program translates packets before Turnout, or beside it: a node port or address that it wants too is served by it (CVE-2019-9946)",
      because: found.slice(0, NAMED_MAX).join("; "),
      mend: "give host ports and published ports of containers other numbers than node ports; portmap since 0.7.5 puts its rules behind others",
    },
  ];
}
