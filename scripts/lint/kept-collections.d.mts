import type { Rule } from 'eslint';
export declare const keptCollections: Rule.RuleModule;
