/** What the kernel says; nft puts it behind "Could not process rule". */
const KERNEL_WORDS = {
  ENOENT: "No such file or directory",
  EEXIST: "File exists",
  EBUSY: "Device or resource busy",
  EINVAL: "Invalid argument",
  EMLINK: "Too many links",
  ENFILE: "Too many open files in system",
  EOPNOTSUPP: "Operation not supported",
  ERANGE: "Numerical result out of range",
} as const;

/** What nft or the kernel has against a transaction. Never leaves the fake: it is printed, as nft prints it. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** Make a refusal by the kernel. */
export function kernelRefusal(errno: keyof typeof KERNEL_WORDS): Refusal {
  return new Refusal(`Could not process rule: ${KERNEL_WORDS[errno]}`);
}
