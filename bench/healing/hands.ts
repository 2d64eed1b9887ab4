import { fileURLToPath } from "node:url";
import { WEB } from "./stage.ts";

/** Something that a foreign hand does to our rules, as a command of a shell on the node. */
export interface Attack {
  readonly name: string;
  readonly command: string;
  /** It takes what others have, too. */
  readonly isAtOthersToo?: true;
}

/** A proxy that is attacked. */
export interface Victim {
  /** Of `turnout run`. */
  readonly flags: readonly string[];
  readonly attacks: readonly Attack[];
}

const NFT: readonly Attack[] = [
  { name: "one element of services deleted", command: `nft delete element ip turnout services '{ ${WEB.address} . tcp . ${WEB.port} }'` },
  { name: "one endpoint deleted", command: `nft delete element ip turnout endpoints-tcp '{ ${WEB.address} . ${WEB.port} . 0 }'` },
  { name: "a base chain flushed", command: "nft flush chain ip turnout nat-prerouting" },
  { name: "a rule that drops inserted", command: "nft insert rule ip turnout nat-prerouting drop" },
  { name: "all rules flushed", command: "nft flush table ip turnout" },
  { name: "the map services flushed", command: "nft flush map ip turnout services" },
  {
    name: "an element replaced",
    command: `nft 'delete element ip turnout services { ${WEB.address} . tcp . ${WEB.port} }; add element ip turnout services { ${WEB.address} . tcp . ${WEB.port} : drop }'`,
  },
  { name: "the table deleted", command: "nft delete table ip turnout" },
  { name: "all of nft flushed", command: "nft flush ruleset", isAtOthersToo: true },
];

function iptables(variant: "nft" | "legacy"): readonly Attack[] {
  const tool = `iptables-${variant}`;
  const chain = `$(${tool} -t nat -S KUBE-SERVICES | sed -n 's|.* -d ${WEB.address}/32 .*-j ||p')`;
  return [
    {
      name: "a Service's rule deleted",
      command: `${tool} -t nat $(${tool} -t nat -S KUBE-SERVICES | grep ' -d ${WEB.address}/32 ' | sed 's/^-A/-D/;s/ -m comment --comment "[^"]*"//;s/ -m comment --comment [^ ]*//') || ${tool} -t nat -F KUBE-SERVICES`,
    },
    { name: "a Service's chain flushed", command: `${tool} -t nat -F ${chain}` },
    { name: "a rule that drops inserted", command: `${tool} -t nat -I KUBE-SERVICES -d ${WEB.address}/32 -j RETURN` },
    { name: "PREROUTING flushed", command: `${tool} -t nat -F PREROUTING`, isAtOthersToo: true },
    { name: "all of nat flushed", command: `${tool} -t nat -F`, isAtOthersToo: true },
    {
      name: "all of iptables flushed",
      command: `for t in nat filter mangle; do ${tool} -t $t -F; ${tool} -t $t -X; done`,
      isAtOthersToo: true,
    },
  ];
}

/** Does what no program of a shell can: `detach PIN`. */
const EBPF_HAND = `${process.execPath} --conditions=@turnout/source ${fileURLToPath(new URL("ebpf-hand.ts", import.meta.url))}`;
const LINKS = "/sys/fs/bpf/turnout/links";

const EBPF: readonly Attack[] = [
  { name: "the program at connect() detached", command: `${EBPF_HAND} detach ${LINKS}/turnout_conn4` },
  { name: "the programs at devices detached", command: `for pin in ${LINKS}/*-ingress; do ${EBPF_HAND} detach $pin; done` },
  { name: "the pins of links removed", command: `rm ${LINKS}/*` },
  { name: "its table of nft deleted", command: "nft delete table inet turnout-ebpf" },
  { name: "a chain of it flushed", command: "nft flush chain inet turnout-ebpf refuse" },
];

/** By the names that the table has. */
export const VICTIMS: Readonly<Record<string, Victim>> = {
  nft: { flags: ["--backend", "nft"], attacks: NFT },
  "iptables (nft)": { flags: ["--backend", "iptables", "--backend-option", "variant=nft"], attacks: iptables("nft") },
  "iptables (legacy)": {
    flags: ["--backend", "iptables", "--backend-option", "variant=legacy"],
    attacks: iptables("legacy"),
  },
  ebpf: { flags: ["--backend", "ebpf"], attacks: EBPF },
};
