import { cidrContains, parseCIDR, parseIP } from "@turnout/core";

/** Whether an address is one that a rule names: itself, a CIDR, a range `a-b`, or with a mask. Pure. */
export function isAddressIn(address: string, text: string): boolean {
  const ip = parseIP(address);
  if (ip === undefined) return false;
  const [first = "", last] = text.split("-");
  if (last !== undefined) {
    const [from, to] = [parseIP(first), parseIP(last)];
    return from !== undefined && to !== undefined && from.family === ip.family && from.value <= ip.value && ip.value <= to.value;
  }
  const cidr = parseCIDR(text.includes("/") ? text : `${text}/${ip.family === "IPv4" ? 32 : 128}`);
  return cidr !== undefined && cidrContains(cidr, ip);
}

/** Whether a device is one that a rule names: `eth0`, `cali+` or `cali*`. Pure. */
export function isDevice(device: string, text: string): boolean {
  return /[+*]$/.test(text) ? device.startsWith(text.slice(0, -1)) : device === text;
}

/** Whether a port is one of a list: `80`, `80:90`, `80-90`, with commas. Pure. */
export function isPortIn(port: number | undefined, text: string): boolean | undefined {
  if (port === undefined) return undefined;
  return text.split(",").some((part) => {
    const [from = "", to = from] = part.split(/[:-]/);
    return Number(from || 0) <= port && port <= Number(to || 65_535);
  });
}
