// Rows of ops on pictures, boxes and sound. op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/quantized_forms.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr char kResizeBicubicSignature[] =
    R"((images: T, size: int32)
       -> (resized_images: float)
       | T: {real}; align_corners: bool = false;
       late half_pixel_centers: bool = false)";

// Where `weight_bits` are not 0, the shares of pixels are multiples of
// 2 ** -weight_bits, as where runtimes resize 8-bit images in integers.
constexpr char kResizeLinearSignature[] =
    R"((images: T, size: int32)
       -> (resized_images: float)
       | T: {real}; align_corners: bool = false;
       late half_pixel_centers: bool = false;
       late weight_bits: int = 0)";

constexpr OpRow kRows[] = {
    // Files to pixels and back.
    {.names = "DecodeJpeg",
     .signature = R"((contents: string) -> (image: uint8)
       | channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
       try_recover_truncated: bool = false; acceptable_fraction: float = 1;
       dct_method: string = "")",
     .shape = DecodeImageShape,
     .demand = InputDemand::kScalar},
    {.names = "DecodeAndCropJpeg",
     .signature = R"((contents: string, crop_window: int32) -> (image: uint8)
       | channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
       try_recover_truncated: bool = false; acceptable_fraction: float = 1;
       dct_method: string = "")",
     .shape = DecodeImageShape},
    {.names = "DecodePng",
     .signature = R"((contents: string) -> (image: dtype)
       | channels: int = 0; dtype: {uint8, uint16} = uint8)",
     .shape = DecodeImageShape,
     .demand = InputDemand::kScalar},
    {.names = "DecodeBmp",
     .signature = "(contents: string) -> (image: uint8) | channels: int = 0",
     .shape = DecodeImageShape,
     .demand = InputDemand::kScalar},
    {.names = "DecodeGif",
     .signature = "(contents: string) -> (image: uint8)",
     .shape = DecodeGifShape,
     .demand = InputDemand::kScalar},
    {.names = "DecodeImage",
     .signature = R"((contents: string) -> (image: dtype)
       | channels: int = 0; dtype: {uint8, uint16, float} = uint8;
       expand_animations: bool = true)",
     .shape = DecodeAnyImageShape,
     .demand = InputDemand::kScalar,
     .origin = Origin::kLaterTensorFlow},
    {.names = "EncodeJpeg",
     .signature = R"((image: uint8) -> (contents: string)
       | format: string {"", grayscale, rgb} = ""; quality: int = 95;
       progressive: bool = false; optimize_size: bool = false;
       chroma_downsampling: bool = true; density_unit: string {in, cm} = in;
       x_density: int = 300; y_density: int = 300; xmp_metadata: string = "")",
     .shape = ScalarOutputs},
    {.names = "EncodePng",
     .signature = R"((image: T) -> (contents: string)
       | compression: int = -1; T: {uint8, uint16} = uint8)",
     .shape = ScalarOutputs},
    {.names = "ExtractJpegShape",
     .signature = R"((contents: string) -> (image_shape: output_type)
       | output_type: {index} = int32)",
     .shape = JpegShapeShape},

    // Size.
    {.names = "ResizeBilinear",
     .signature = kResizeLinearSignature,
     .shape = ResizeShape,
     .demand = InputDemand::kImages,
     .flow = ValueFlow::kRangePreserving,
     .quantized = &kQuantizedResizeBilinearForm},
    {.names = "ResizeBicubic",
     .signature = kResizeBicubicSignature,
     .shape = ResizeShape},
    {.names = "ResizeNearestNeighbor",
     .signature = R"((images: T, size: int32) -> (resized_images: T)
       | T: {real}; align_corners: bool = false;
       late half_pixel_centers: bool = false)",
     .shape = ResizeShape,
     .demand = InputDemand::kImages,
     .flow = ValueFlow::kDataMovement,
     .moves_bytes = true},
    {.names = "ResizeArea",
     .signature = R"((images: T, size: int32) -> (resized_images: float)
       | T: {real}; align_corners: bool = false)",
     .shape = ResizeShape,
     .flow = ValueFlow::kRangePreserving},
    {.names = "ResizeBilinearGrad",
     .signature = R"((grads: float, original_image: T) -> (output: T)
       | T: {floating}; align_corners: bool = false;
       late half_pixel_centers: bool = false)",
     .shape = SecondInputShape},
    {.names = "ResizeNearestNeighborGrad",
     .signature = R"((grads: T, size: int32) -> (output: T)
       | T: {uint8, int8, int32, half, float, double, bfloat16};
       align_corners: bool = false; late half_pixel_centers: bool = false)",
     .shape = ResizeShape},
    {.names = "CropAndResize",
     .signature = R"((image: T, boxes: float, box_ind: int32, crop_size: int32)
       -> (crops: float)
       | T: {uint8, uint16, int8, int16, int32, int64, half, float, double};
       method: string {bilinear, nearest} = bilinear;
       extrapolation_value: float = 0)",
     .shape = CropAndResizeShape},
    {.names = "RandomCrop",
     .signature = R"((image: T, size: int64) -> (output: T) stateful
       | T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0;
       seed2: int = 0)"},
    {.names = "ExtractGlimpse",
     .signature =
         R"((input: float, size: int32, offsets: float) -> (glimpse: float)
       | centered: bool = true; normalized: bool = true;
       uniform_noise: bool = true; late noise: string = uniform)",
     .shape = GlimpseShape},
    {.names = "ImageProjectiveTransformV2",
     .signature = R"((images: dtype, transforms: float,
       output_shape: int32) -> (transformed_images: dtype)
       | dtype: {uint8, int32, int64, half, bfloat16, float, double};
       interpolation: string; late fill_mode: string = CONSTANT)",
     .origin = Origin::kLaterTensorFlow},

    // Colour.
    {.names = "AdjustContrastv2",
     .signature = R"((images: T, contrast_factor: float) -> (output: T)
       | late T: {half, float} = float)",
     .shape = UnchangedShape},
    {.names = "AdjustHue",
     .signature = R"((images: T, delta: float) -> (output: T)
       | late T: {half, float} = float)",
     .shape = UnchangedShape},
    {.names = "AdjustSaturation",
     .signature = R"((images: T, scale: float) -> (output: T)
       | late T: {half, float} = float)",
     .shape = UnchangedShape},
    {.names = "RGBToHSV, HSVToRGB",
     .signature = "(images: T) -> (output: T) | T: {floating} = float",
     .shape = UnchangedShape},

    // Boxes.
    {.names = "NonMaxSuppression",
     .signature = R"((boxes: float, scores: float, max_output_size: int32)
       -> (selected_indices: int32) | iou_threshold: float = 0.5)",
     .shape = NonMaxSuppressionShape},
    {.names = "NonMaxSuppressionV2",
     .signature = R"((
       boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold)
       -> (selected_indices: int32)
       | late T: {half, float} = float; late T_threshold: {half, float} = float)",
     .shape = NonMaxSuppressionShape},
    {.names = "NonMaxSuppressionV3",
     .signature = R"((
       boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
       score_threshold: T_threshold) -> (selected_indices: int32)
       | late T: {half, float} = float; late T_threshold: {half, float} = float)",
     .shape = NonMaxSuppressionShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "NonMaxSuppressionV4",
     .signature = R"((
       boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
       score_threshold: T_threshold)
       -> (selected_indices: int32, valid_outputs: int32)
       | late T: {half, float} = float; late T_threshold: {half, float} = float;
       pad_to_max_output_size: bool = false)",
     .shape = NonMaxSuppressionShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "NonMaxSuppressionV5",
     .signature = R"((
       boxes: T, scores: T, max_output_size: int32, iou_threshold: T,
       score_threshold: T, soft_nms_sigma: T)
       -> (selected_indices: int32, selected_scores: T, valid_outputs: int32)
       | T: {half, float} = float; pad_to_max_output_size: bool = false)",
     .shape = NonMaxSuppressionShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "NonMaxSuppressionWithOverlaps",
     .signature = R"((
       overlaps: float, scores: float, max_output_size: int32,
       overlap_threshold: float, score_threshold: float)
       -> (selected_indices: int32))",
     .shape = NonMaxSuppressionShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "CombinedNonMaxSuppression",
     .signature = R"((
       boxes: float, scores: float, max_output_size_per_class: int32,
       max_total_size: int32, iou_threshold: float, score_threshold: float)
       -> (nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float,
       valid_detections: int32)
       | pad_per_class: bool = false; late clip_boxes: bool = true)",
     .origin = Origin::kLaterTensorFlow},
    {.names = "DrawBoundingBoxes",
     .signature = R"((images: T, boxes: float) -> (output: T)
       | T: {float, half} = float)",
     .shape = UnchangedShape},
    {.names = "DrawBoundingBoxesV2",
     .signature = R"((images: T, boxes: float, colors: float) -> (output: T)
       | T: {float, half} = float)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "SampleDistortedBoundingBox",
     .signature = R"((image_size: T, bounding_boxes: float)
       -> (begin: T, size: T, bboxes: float) stateful
       | T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0;
       min_object_covered: float = 0.1;
       aspect_ratio_range: list(float) = [0.75, 1.33];
       area_range: list(float) = [0.05, 1]; max_attempts: int = 100;
       use_image_if_no_bounding_boxes: bool = false)",
     .shape = DistortedBoxShape},
    {.names = "SampleDistortedBoundingBoxV2",
     .signature = R"((
       image_size: T, bounding_boxes: float, min_object_covered: float)
       -> (begin: T, size: T, bboxes: float) stateful
       | T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0;
       aspect_ratio_range: list(float) = [0.75, 1.33];
       area_range: list(float) = [0.05, 1]; max_attempts: int = 100;
       use_image_if_no_bounding_boxes: bool = false)",
     .shape = DistortedBoxShape},

    // Sound.
    {.names = "DecodeWav",
     .signature = R"((contents: string) -> (audio: float, sample_rate: int32)
       | desired_channels: int = -1; desired_samples: int = -1)",
     .shape = DecodeWavShape,
     .demand = InputDemand::kScalar},
    {.names = "EncodeWav",
     .signature = "(audio: float, sample_rate: int32) -> (contents: string)",
     .shape = ScalarOutputs},
    {.names = "AudioSpectrogram",
     .signature = R"((input: float) -> (spectrogram: float)
       | window_size: int; stride: int; magnitude_squared: bool = false)",
     .shape = SpectrogramShape},
    {.names = "Mfcc",
     .signature = R"((spectrogram: float, sample_rate: int32) -> (output: float)
       | upper_frequency_limit: float = 4000; lower_frequency_limit: float = 20;
       filterbank_channel_count: int = 40; dct_coefficient_count: int = 13)",
     .shape = MfccShape},
};

}  // namespace

absl::Span<const OpRow> ImageOps() { return kRows; }

}  // namespace optfarm::graph
