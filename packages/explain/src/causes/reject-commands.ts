/** What shows the rules of this host that refuse packets: a connection that one of them refuses looks like a port on which nothing listens. */
export const REJECT_COMMANDS: readonly string[] = ["iptables-save | grep REJECT", "nft list ruleset | grep reject"];
