/** What the public interface answers (see /openapi.json), as far as the pages use it. */

export interface Page<Item> {
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly last_id: string | null;
}

export interface Session {
  readonly account: { readonly id: string; readonly name: string; readonly tier: string; readonly variant: 'A' | 'B' };
  readonly key: { readonly id: string; readonly name: string; readonly prefix: string; readonly scopes: readonly string[]; readonly expires_at: number | null; readonly limited?: boolean };
  readonly csrf_token: string | null;
  readonly expires_at: number | null;
}

export type CapPeriod = 'day' | 'week' | 'month' | 'total';

export interface Cap {
  readonly cap_usd: number;
  readonly period: CapPeriod;
}

export interface Limits {
  readonly requests_per_minute: number | null;
  readonly burst_per_second: number | null;
  readonly caps: readonly { readonly scope: 'account' | 'key'; readonly key_id: string | null; readonly period: CapPeriod; readonly limit_usd: number; readonly spent_usd: number; readonly reserved_usd: number; readonly resets_at: number | null }[];
  readonly tokens: { readonly included: number; readonly used: number; readonly reserved: number; readonly hard_cap: boolean; readonly resets_at: number | null } | null;
  readonly byok_tokens: { readonly included: number; readonly used: number; readonly reserved: number; readonly resets_at: number | null } | null;
  readonly trial_credit: { readonly limit_usd: number; readonly spent_usd: number; readonly reserved_usd: number } | null;
  readonly spent_usd: number;
  readonly reserved_usd: number;
}

export interface UsageRow {
  readonly day?: string;
  readonly model?: string;
  readonly provider?: string;
  readonly key?: string;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_usd: number;
  readonly charge_usd: number;
  readonly savings_usd: number;
  readonly latency_ms_p50: number | null;
  readonly latency_ms_p95: number | null;
  readonly time_to_first_token_ms_p50: number | null;
}

export interface RequestRow {
  readonly id: string;
  readonly created: number | null;
  readonly key_id: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  readonly status: string;
  readonly byok: boolean;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_usd: number;
  readonly charge_usd: number;
  readonly savings_usd: number;
  readonly latency_ms: number;
  readonly time_to_first_token_ms: number | null;
  readonly finish_reason: string | null;
  readonly routed_from: string | null;
  readonly decision_id: string | null;
}

export interface RequestAttempt {
  readonly attempt: number;
  readonly provider: string;
  readonly model: string | null;
  readonly endpoint_id: string | null;
  readonly status: number | null;
  readonly failure: string | null;
  readonly charged: boolean;
  readonly source: string;
  readonly tokens: Readonly<Record<string, number>>;
  readonly cost_usd: number;
  /** Fees of plugins in that cost. */
  readonly plugins_usd: number;
  readonly latency_ms: number;
  readonly time_to_first_token_ms: number | null;
  readonly finish_reason: string | null;
}

/** One provider that failed before a request was refused. */
export interface PreviousError {
  readonly provider: string;
  readonly code: string;
}

export interface RequestDetail extends RequestRow {
  readonly attempts: readonly RequestAttempt[];
  readonly charge: { readonly amount_usd: number; readonly period: string; readonly source: string | null; readonly adjustments: readonly { readonly amount_usd: number; readonly period: string; readonly at: number | null }[] };
}

export interface KeyRecord {
  readonly id: string;
  readonly name: string;
  readonly key?: string;
  readonly prefix: string;
  readonly status: 'active' | 'rotating' | 'disabled' | 'expired' | 'revoked';
  readonly scopes: readonly string[];
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  readonly limits: { readonly requests_per_minute: number | null; readonly cost_cap_usd: number | null; readonly cost_cap_period: CapPeriod | null; readonly cost_caps?: readonly Cap[]; readonly allowed_models: readonly string[] | null };
}

export interface Pricing {
  readonly input: number;
  readonly cached_input: number;
  readonly output: number;
}

export interface ModelEndpoint {
  readonly id: string;
  readonly provider: string;
  readonly pricing: Pricing | null;
  readonly context_window: number | null;
  readonly max_output_tokens: number | null;
  readonly quantization_bits: number | null;
  readonly policy: { readonly trains_on_data?: unknown; readonly zdr?: unknown };
  readonly live?: { readonly breaker: 'closed' | 'open' | 'half-open'; readonly samples: number; readonly latency_ms_p75: number | null; readonly throughput_tps_p50: number | null };
}

export interface ModelRecord {
  readonly id: string;
  readonly owned_by: string;
  readonly pricing?: Pricing | null;
  readonly context_window?: number | null;
  readonly capabilities?: Readonly<Record<string, boolean>> | null;
  readonly deprecation_date?: string | null;
  readonly endpoints?: readonly ModelEndpoint[];
}

export interface StatementRow {
  readonly period: string;
  readonly status: string;
  readonly starts_at: number;
  readonly ends_at: number;
  readonly model_spend_usd: number;
  readonly charge_usd: number;
}

export interface Statement extends Omit<StatementRow, 'charge_usd'> {
  readonly tier: string;
  readonly subscription_usd: number;
  readonly included_tokens: number | null;
  readonly used_tokens: number;
  readonly overage_usd: number;
  readonly plugins_usd: number;
  readonly adjustments_usd: number;
  readonly trial_credit_usd: number;
  readonly total_usd: number;
  readonly lines: readonly { readonly kind: string; readonly description: string; readonly model: string | null; readonly provider: string | null; readonly tokens: number; readonly requests: number; readonly amount_usd: number }[];
}

export interface Policy {
  readonly mode: string | null;
  readonly lambda: number | null;
  readonly baseline_model: string | null;
  readonly allow_models: readonly string[];
  readonly deny_models: readonly string[];
  readonly allow_providers: readonly string[];
  readonly deny_providers: readonly string[];
  readonly cost_caps: readonly Cap[];
  readonly hard_cap: boolean;
  /** What holds, the operator's included. */
  readonly effective: { readonly baseline_model: string | null; readonly hard_cap: boolean };
}

export interface ProviderKey {
  readonly provider: string;
  readonly last4: string | null;
  readonly zdr: boolean;
  readonly created_at: number;
  readonly base_url?: string | null;
}

export interface PluginOption {
  readonly type: string;
  readonly description: string;
  readonly default?: string | number | boolean;
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
}

export interface Plugin {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly paid: boolean;
  readonly kind: string;
  readonly fee_usd: number;
  readonly policies: { readonly zdr: boolean; readonly data_collection_deny: boolean };
  readonly options: Readonly<Record<string, PluginOption>>;
}

/** Why a request went where it went; kept for days, and not for requests whose data must not be kept. */
export interface Decision {
  readonly why: string;
  readonly candidates: readonly { readonly model: string; readonly endpoint: string; readonly quality: number | null; readonly expected_cost_usd: number | null; readonly latency_ms_p75: number | null }[];
  readonly excluded: Readonly<Record<string, number>>;
}
