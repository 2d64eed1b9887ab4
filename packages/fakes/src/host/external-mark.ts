/** The mark bit that somebody else sets on every packet; no scenario gives it to a backend. */
export const EXTERNAL_BIT = 0x0002_0000;
