import { parseCIDR, type CIDR } from "@turnout/core";

/** Read a CIDR of the configuration: without blanks around it, as in kube-proxy. Undefined: it is none. */
export function cidrOf(text: string): CIDR | undefined {
  return text === text.trim() ? parseCIDR(text) : undefined;
}
