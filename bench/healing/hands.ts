import { fileURLToPath } from "node:url";
import { WEB } from "./stage.ts";

/** Something that a foreign hand does to our rules, as a command of a shell on the node. */
export interface Attack {
  readonly name: string;
  readonly command: string;
  /** It takes what others have, too. */
  readonly isAtOthersToo?: true;
  /** Nothing tells of it, so it is found when everything is compared. */
  readonly isSilent?: true;
}

/** A proxy that is attacked. */
export interface Victim {
  /** Of `turnout run`. */
  readonly flags: readonly string[];
  readonly attacks: readonly Attack[];
  /** It takes a kernel that only a guest has. */
  readonly isInVm?: true;
}

const NFT: readonly Attack[] = [
  { name: "one element of services deleted", command: `nft delete element ip turnout services '{ ${WEB.address} . tcp . ${WEB.port} }'` },
  { name: "one endpoint deleted", command: `nft delete element ip turnout endpoints-tcp '{ ${WEB.address} . ${WEB.port} . 1 }'` },
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
  // By its number: -S begins with a line for the chain.
  const rule = `$(${tool} -t nat -S KUBE-SERVICES | grep -n ' -d ${WEB.address}/32 ' | awk -F: '{ print $1 - 1; exit }')`;
  return [
    { name: "a Service's rule deleted", command: `${tool} -t nat -D KUBE-SERVICES ${rule}` },
    { name: "KUBE-SERVICES flushed", command: `${tool} -t nat -F KUBE-SERVICES` },
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
const EBPF_WRITER = `${process.execPath} --conditions=@turnout/source ${fileURLToPath(new URL("ebpf-hand.ts", import.meta.url))}`;
const LINKS = "/sys/fs/bpf/turnout/links";
const MAPS = "/sys/fs/bpf/turnout/v*";
/** The address as it lies in keys. */
const WEB_BYTES = WEB.address
  .split(".")
  .map((part) => Number(part).toString(16).padStart(2, "0"))
  .join("");

const EBPF: readonly Attack[] = [
  { name: "the program at connect() detached", command: `${EBPF_WRITER} detach ${LINKS}/turnout_conn4` },
  { name: "the programs at devices detached", command: `for pin in ${LINKS}/*-ingress; do ${EBPF_WRITER} detach $pin; done` },
  { name: "one element of services deleted", command: `${EBPF_WRITER} delete ${MAPS}/services ${WEB_BYTES}` },
  { name: "the map services emptied", command: `${EBPF_WRITER} delete ${MAPS}/services` },
  { name: "the map endpoints emptied", command: `${EBPF_WRITER} delete ${MAPS}/endpoints` },
  { name: "an element's value replaced", command: `${EBPF_WRITER} spoil ${MAPS}/services ${WEB_BYTES}` },
  { name: "the pins of links removed", command: `rm ${LINKS}/*` },
  { name: "its table of nft deleted", command: "nft delete table inet turnout-ebpf" },
  { name: "a chain of it flushed", command: "nft flush chain inet turnout-ebpf refuse" },
];

const SERVER = `${WEB.address}:${WEB.port}`;
/** The address and port of the one real server. */
const REAL = `$(ipvsadm -Ln -t ${SERVER} | sed -n 's/^  -> \\([0-9][0-9.:]*\\) .*/\\1/p' | head -n 1)`;

const IPVS: readonly Attack[] = [
  { name: "one virtual server deleted", command: `ipvsadm -D -t ${SERVER}` },
  { name: "a real server deleted", command: `ipvsadm -d -t ${SERVER} -r ${REAL}` },
  { name: "a set emptied", command: "ipset flush KUBE-CLUSTER-IP" },
  { name: "an address removed", command: `ip address del ${WEB.address}/32 dev kube-ipvs0` },
  { name: "a chain of rules flushed", command: "iptables-legacy -t nat -F KUBE-SERVICES" },
  { name: "a real server's weight set to 0", command: `ipvsadm -e -t ${SERVER} -r ${REAL} -m -w 0`, isSilent: true },
  { name: "all of IPVS emptied", command: "ipvsadm -C", isAtOthersToo: true },
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
  ipvs: { flags: ["--backend", "ipvs", "--backend-option", "variant=legacy"], attacks: IPVS, isInVm: true },
};
