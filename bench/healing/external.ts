import type { NodePlace } from "@turnout/lab";

const NFT_TABLE = `
nft -f - <<'N'
table inet foreign {
  set friends { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 } }
  chain gate { type filter hook forward priority 7; policy accept; ip saddr @friends counter accept comment "foreign"; }
}
N`;
const IPVS_SERVER = `
ipset create FOREIGN hash:ip
ipset add FOREIGN 192.0.2.5
ipvsadm -A -t 192.0.2.8:80 -s rr
ipvsadm -a -t 192.0.2.8:80 -r 192.0.2.81:80 -m`;

/** What others have on the node, which repairs must not touch. */
const makeWith = (tools: string): string => `
for tool in ${tools}; do
  $tool -t nat -N FOREIGN
  $tool -t nat -A FOREIGN -s 192.0.2.9/32 -j RETURN
  $tool -t nat -I PREROUTING -j FOREIGN
  $tool -t filter -N FOREIGN
  $tool -t filter -A FORWARD -j FOREIGN
done`;
const lookWith = (tools: string): string => `
for tool in ${tools}; do for table in nat filter; do
  $tool -t $table -S FOREIGN
  for chain in PREROUTING FORWARD; do $tool -t $table -S $chain 2>/dev/null | grep FOREIGN; done
done; done
true`;

/** The tools of a host, and those of a guest, whose kernel has no nf_tables. */
const HOST = {
  make: `${NFT_TABLE}${makeWith("iptables-nft iptables-legacy")}`,
  look: `nft -s list table inet foreign${lookWith("iptables-nft iptables-legacy")}`,
};
const VM = {
  make: `${IPVS_SERVER}${makeWith("iptables-legacy")}`,
  look: `ipset save FOREIGN; ipvsadm -Sn | grep 192.0.2.8${lookWith("iptables-legacy")}`,
};

/** What others have in such a place. */
export function othersIn(isInVm: boolean): Others {
  const { make, look } = isInVm ? VM : HOST;
  return {
    async make(node) {
      const { code, stderr } = await node.run("sh", ["-c", make]);
      if (code !== 0) throw new Error(`others can't have rules here: ${stderr}`);
    },
    look: async (node) => (await node.run("sh", ["-c", look])).stdout,
  };
}

/** What others than the proxy have on a node. */
export interface Others {
  /** Have them make something. */
  make(node: NodePlace): Promise<void>;
  /** What they have now. */
  look(node: NodePlace): Promise<string>;
}
