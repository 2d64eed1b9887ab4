import type { NodePlace } from "@turnout/lab";

/** What others have on the node, which repairs must not touch. */
const MAKE = `
nft -f - <<'N'
table inet foreign {
  set friends { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 } }
  chain gate { type filter hook forward priority 7; policy accept; ip saddr @friends counter accept comment "foreign"; }
}
N
for tool in iptables-nft iptables-legacy; do
  $tool -t nat -N FOREIGN
  $tool -t nat -A FOREIGN -s 192.0.2.9/32 -j RETURN
  $tool -t nat -I PREROUTING -j FOREIGN
  $tool -t filter -N FOREIGN
  $tool -t filter -A FORWARD -j FOREIGN
done`;
const LOOK = `
nft -s list table inet foreign
for tool in iptables-nft iptables-legacy; do for table in nat filter; do
  $tool -t $table -S FOREIGN
  for chain in PREROUTING FORWARD; do $tool -t $table -S $chain 2>/dev/null | grep FOREIGN; done
done; done
true`;

/** Have others make something. */
export async function makeForeign(node: NodePlace): Promise<void> {
  const { code, stderr } = await node.run("sh", ["-c", MAKE]);
  if (code !== 0) throw new Error(`others can't have rules here: ${stderr}`);
}

/** What others have now. */
export async function lookAtForeign(node: NodePlace): Promise<string> {
  return (await node.run("sh", ["-c", LOOK])).stdout;
}
