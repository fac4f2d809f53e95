// Signatures of ops on pictures, boxes and sound. The notation is explained in
// op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view ImageOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Files to pixels and back.
DecodeJpeg(contents: string) -> (image: uint8)
  | channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
    try_recover_truncated: bool = false; acceptable_fraction: float = 1;
    dct_method: string = ""
DecodeAndCropJpeg(contents: string, crop_window: int32) -> (image: uint8)
  | channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
    try_recover_truncated: bool = false; acceptable_fraction: float = 1;
    dct_method: string = ""
DecodePng(contents: string) -> (image: dtype)
  | channels: int = 0; dtype: {uint8, uint16} = uint8
DecodeBmp(contents: string) -> (image: uint8) | channels: int = 0
DecodeGif(contents: string) -> (image: uint8)
DecodeImage(contents: string) -> (image: dtype)
  | channels: int = 0; dtype: {uint8, uint16, float} = uint8;
    expand_animations: bool = true
EncodeJpeg(image: uint8) -> (contents: string)
  | format: string {"", grayscale, rgb} = ""; quality: int = 95;
    progressive: bool = false; optimize_size: bool = false;
    chroma_downsampling: bool = true; density_unit: string {in, cm} = in;
    x_density: int = 300; y_density: int = 300; xmp_metadata: string = ""
EncodePng(image: T) -> (contents: string)
  | compression: int = -1; T: {uint8, uint16} = uint8
ExtractJpegShape(contents: string) -> (image_shape: output_type)
  | output_type: {index} = int32

# Size.
ResizeBilinear, ResizeBicubic(images: T, size: int32)
  -> (resized_images: float)
  | T: {real}; align_corners: bool = false;
    late half_pixel_centers: bool = false
ResizeNearestNeighbor(images: T, size: int32) -> (resized_images: T)
  | T: {real}; align_corners: bool = false;
    late half_pixel_centers: bool = false
ResizeArea(images: T, size: int32) -> (resized_images: float)
  | T: {real}; align_corners: bool = false
ResizeBilinearGrad(grads: float, original_image: T) -> (output: T)
  | T: {floating}; align_corners: bool = false;
    late half_pixel_centers: bool = false
ResizeNearestNeighborGrad(grads: T, size: int32) -> (output: T)
  | T: {uint8, int8, int32, half, float, double, bfloat16};
    align_corners: bool = false; late half_pixel_centers: bool = false
CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32)
  -> (crops: float)
  | T: {uint8, uint16, int8, int16, int32, int64, half, float, double};
    method: string {bilinear, nearest} = bilinear;
    extrapolation_value: float = 0
RandomCrop(image: T, size: int64) -> (output: T) stateful
  | T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0;
    seed2: int = 0
ExtractGlimpse(input: float, size: int32, offsets: float) -> (glimpse: float)
  | centered: bool = true; normalized: bool = true;
    uniform_noise: bool = true; late noise: string = uniform
ImageProjectiveTransformV2(images: dtype, transforms: float,
  output_shape: int32) -> (transformed_images: dtype)
  | dtype: {uint8, int32, int64, half, bfloat16, float, double};
    interpolation: string; late fill_mode: string = CONSTANT

# Colour.
AdjustContrastv2(images: T, contrast_factor: float) -> (output: T)
  | late T: {half, float} = float
AdjustHue(images: T, delta: float) -> (output: T)
  | late T: {half, float} = float
AdjustSaturation(images: T, scale: float) -> (output: T)
  | late T: {half, float} = float
RGBToHSV, HSVToRGB(images: T) -> (output: T) | T: {floating} = float

# Boxes.
NonMaxSuppression(boxes: float, scores: float, max_output_size: int32)
  -> (selected_indices: int32) | iou_threshold: float = 0.5
NonMaxSuppressionV2(
  boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold)
  -> (selected_indices: int32)
  | late T: {half, float} = float; late T_threshold: {half, float} = float
NonMaxSuppressionV3(
  boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
  score_threshold: T_threshold) -> (selected_indices: int32)
  | late T: {half, float} = float; late T_threshold: {half, float} = float
NonMaxSuppressionV4(
  boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,
  score_threshold: T_threshold)
  -> (selected_indices: int32, valid_outputs: int32)
  | late T: {half, float} = float; late T_threshold: {half, float} = float;
    pad_to_max_output_size: bool = false
NonMaxSuppressionV5(
  boxes: T, scores: T, max_output_size: int32, iou_threshold: T,
  score_threshold: T, soft_nms_sigma: T)
  -> (selected_indices: int32, selected_scores: T, valid_outputs: int32)
  | T: {half, float} = float; pad_to_max_output_size: bool = false
NonMaxSuppressionWithOverlaps(
  overlaps: float, scores: float, max_output_size: int32,
  overlap_threshold: float, score_threshold: float)
  -> (selected_indices: int32)
CombinedNonMaxSuppression(
  boxes: float, scores: float, max_output_size_per_class: int32,
  max_total_size: int32, iou_threshold: float, score_threshold: float)
  -> (nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float,
      valid_detections: int32)
  | pad_per_class: bool = false; late clip_boxes: bool = true
DrawBoundingBoxes(images: T, boxes: float) -> (output: T)
  | T: {float, half} = float
DrawBoundingBoxesV2(images: T, boxes: float, colors: float) -> (output: T)
  | T: {float, half} = float
SampleDistortedBoundingBox(image_size: T, bounding_boxes: float)
  -> (begin: T, size: T, bboxes: float) stateful
  | T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0;
    min_object_covered: float = 0.1;
    aspect_ratio_range: list(float) = [0.75, 1.33];
    area_range: list(float) = [0.05, 1]; max_attempts: int = 100;
    use_image_if_no_bounding_boxes: bool = false
SampleDistortedBoundingBoxV2(
  image_size: T, bounding_boxes: float, min_object_covered: float)
  -> (begin: T, size: T, bboxes: float) stateful
  | T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0;
    aspect_ratio_range: list(float) = [0.75, 1.33];
    area_range: list(float) = [0.05, 1]; max_attempts: int = 100;
    use_image_if_no_bounding_boxes: bool = false

# Sound.
DecodeWav(contents: string) -> (audio: float, sample_rate: int32)
  | desired_channels: int = -1; desired_samples: int = -1
EncodeWav(audio: float, sample_rate: int32) -> (contents: string)
AudioSpectrogram(input: float) -> (spectrogram: float)
  | window_size: int; stride: int; magnitude_squared: bool = false
Mfcc(spectrogram: float, sample_rate: int32) -> (output: float)
  | upper_frequency_limit: float = 4000; lower_frequency_limit: float = 20;
    filterbank_channel_count: int = 40; dct_coefficient_count: int = 13
)";
  return kText;
}

}  // namespace optfarm::graph
