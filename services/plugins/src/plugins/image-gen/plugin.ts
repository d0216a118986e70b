/** image-gen: a function with which the model generates images for the user. */
import { sniffMediaType } from '@signalbox/net-guard/media-type';
import type { OptionValues } from '@signalbox/plugin-kit/manifest';
import type { DataPolicy, Plugin, ToolResult } from '@signalbox/plugin-kit/plugin';
import { costMax, imagesCost, modelsLeftOutBy, OPERATOR, pickModel, PROMPT_BYTES_MAX, type ImageModel, type Payer } from '../../domain/image-models.js';
import type { ImageMaker } from '../../domain/ports.js';
import { manifestOf, type ImageGenOptions } from './manifest.js';

const TOOL = {
  name: 'generate_image',
  description: 'Makes an image from a description and shows it to the user together with your answer. You do not see it. Call it once for each image that the user asks for.',
  parameters: { type: 'object', properties: { prompt: { type: 'string', description: 'What the image shows, in detail: subject, style, composition, colours, text in it.' } }, required: ['prompt'], additionalProperties: false },
} as const;

const MEDIA_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp']);
/** A noise image of the largest usual size has 6 MB. Edge buffers all images of an answer until its end. */
const IMAGE_BYTES_MAX = 8 * 1_024 * 1_024;

const failed = (sentence: string, reason: string): ToolResult => ({ content: `Error: ${sentence}`, isFailed: true, detail: { reason } });

/**
 * The image model to offer for a request. The route decides later whose credentials the request runs on. So a model is
 * also offered if it meets the policy only with the account's own credential; a call on the operator's is then told that
 * there is no model.
 */
function offered(models: readonly ImageModel[], policy: DataPolicy, { model: id, size }: OptionValues<ImageGenOptions>): ImageModel | undefined {
  const { ownCredentials: credentials = [] } = policy;
  return pickModel(models, { id, size }, policy, OPERATOR) ?? pickModel(models, { id, size }, policy, { isOwn: true, credentials });
}

export interface ImageGenNeeds {
  /** Models whose provider has a worker here; at least one. */
  readonly models: readonly ImageModel[];
  readonly maker: ImageMaker;
}

export function createImageGen({ models, maker }: ImageGenNeeds): Plugin<ImageGenOptions> {
  return {
    manifest: manifestOf(models),
    optionProblem: ({ model, size }) => {
      const fitting = models.filter(({ id }) => model === '' || id === model);
      if (fitting.some(({ unitNanoUsd }) => unitNanoUsd.has(size))) return undefined;
      return { name: 'size', kind: 'value', expected: `one of ${fitting.flatMap(({ unitNanoUsd }) => [...unitNanoUsd.keys()]).map((known) => `'${known}'`).join(', ')}` };
    },
    allows: (policy, options) => offered(models, policy, options) !== undefined,
    leftOutBy: (policy, { model: id, size }) => modelsLeftOutBy(models, { id, size }, policy, OPERATOR),
    tools: (options, policy) => {
      const { size, n } = options;
      const model = offered(models, policy, options);
      return model === undefined ? [] : [{ ...TOOL, costNanoUsdMax: costMax(model, size, n), imagesMax: n }];
    },
    runTool: async ({ requestId, accountId, options: { model: id, size, n }, policy, byok, ownCredentials, arguments: { prompt }, signal }) => {
      if (typeof prompt !== 'string' || prompt.trim() === '') return failed("the argument 'prompt' must describe the image.", 'bad_arguments');
      if (Buffer.byteLength(prompt) > PROMPT_BYTES_MAX) return failed(`the description may have ${PROMPT_BYTES_MAX} bytes.`, 'prompt_too_long');
      const payer: Payer = byok ? { isOwn: true, credentials: ownCredentials } : OPERATOR;
      const model = pickModel(models, { id, size }, policy, payer);
      if (model === undefined) return failed(byok ? 'this account runs on its own credentials, and has none that may make such an image.' : 'no image model may serve this request.', 'no_model');
      const own = byok ? ownCredentials.find(({ provider }) => provider === model.provider)?.handle : undefined;
      const result = await maker.make({ requestId, accountId, model, prompt, size, count: n, byokHandle: own }, signal);
      if (result.kind === 'failed') {
        const reason = result.failureClass.toLowerCase();
        return failed(result.publicMessage === '' ? `the image could not be made (${reason}).` : `the image was refused: ${result.publicMessage}`, reason);
      }
      const images = result.images.slice(0, n).flatMap((data) => {
        const mediaType = sniffMediaType(data);
        return mediaType !== undefined && MEDIA_TYPES.has(mediaType) && data.length <= IMAGE_BYTES_MAX ? [{ mediaType, data }] : [];
      });
      if (images.length === 0) return failed('the image could not be made (unreadable).', 'unreadable');
      return {
        content: JSON.stringify({ status: 'completed', images: images.length, size, note: 'The user sees them with your answer.' }),
        isFailed: false,
        images,
        costNanoUsd: imagesCost(model, { size, count: images.length, prompt, promptTokens: result.promptTokens }),
        ...(byok ? {} : { costProvider: model.provider }),
        detail: { model: model.id, images: images.length, size },
      };
    },
  };
}
