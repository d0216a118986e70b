/** Attributes of an attempt's span: named after OpenTelemetry's gen_ai conventions; figures, no content. */
import type { DispatchRequest__Output } from '@signalbox/contracts/worker';
import { completionTokens, promptTokens } from '@signalbox/kernel/tokens';
import type { Span, SpanAttributes } from '@signalbox/runtime/span';
import type { AttemptEnd } from './journal.js';

/** Provider names of the conventions, where they differ from the catalog's ids. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  'azure-openai': 'azure.ai.openai',
  'google-ai-studio': 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
};

/** Sets what is known before the provider is called. */
export function nameSpan(span: Span, { model, provider, requestId, attempt, stream, byok, decisionId }: DispatchRequest__Output): void {
  span.rename(`chat ${model}`);
  span.set({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': PROVIDER_NAMES[provider] ?? provider,
    'gen_ai.request.model': model,
    'signalbox.request_id': requestId,
    'signalbox.attempt': attempt,
    'signalbox.decision_id': decisionId,
    'signalbox.stream': stream,
    'signalbox.byok': byok,
  });
}

/** Set once the journal has the attempt's end. */
export function endedAttributes({ tokens, costNanoUsd, source, status, failure, ttftMs, finishReason }: AttemptEnd): SpanAttributes {
  return {
    'gen_ai.usage.input_tokens': promptTokens(tokens),
    'gen_ai.usage.output_tokens': completionTokens(tokens),
    'gen_ai.response.finish_reasons': [finishReason],
    'http.response.status_code': status,
    'signalbox.time_to_first_token_ms': ttftMs,
    'signalbox.usage_source': source,
    // As text, so that it is exact.
    'signalbox.cost_nano_usd': String(costNanoUsd),
    ...(failure === 'FAILURE_CLASS_UNSPECIFIED' ? {} : { 'error.type': failure }),
  };
}
