import { loadHnsCalls } from "../native/libraries.ts";
import { WindowsHns } from "../native/windows-hns.ts";

/** The HNS of a host that isn't Windows. */
export function noWindows(): WindowsHns {
  return new WindowsHns(() => loadHnsCalls({ platform: "linux", systemRoot: "" }));
}
