/** Hooks of the ip and ip6 families. */
export type Hook = "prerouting" | "input" | "forward" | "output" | "postrouting";
