import { constants } from "node:os";

/** Number of a system error by its name. */
export function errno(name: keyof typeof constants.errno): number {
  return constants.errno[name];
}
