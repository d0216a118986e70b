/** Values of `user` that Anthropic's wire does not accept. */

const LENGTH_MAX = 256;
/** Mail addresses and telephone numbers are refused there. */
const PERSONAL = /@|^\+\d[\d\s().-]{5,}$|^\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}$/;

export const isPersonalUser = (user: string): boolean => user.length > LENGTH_MAX || PERSONAL.test(user);
