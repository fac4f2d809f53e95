// Pixels to files: EncodeJpeg, EncodePng.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/picture.h"
#include "engine/runtime/reference/images/picture_encoders.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<Pixels> ReadPixels(const Tensor& image, DataType dtype,
                                  int most_channels) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(image, "image", dtype));
  OPTFARM_RETURN_IF_ERROR(RequireRank(image, "image", 3));
  OPTFARM_RETURN_IF_ERROR(pictures::CheckSize(image.dim(0), image.dim(1)));
  if (image.num_elements() == 0 || image.dim(2) > most_channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("'image' must have pixels of 1 to ", most_channels,
                     " channels, but has shape ", image.shape().ToString()));
  }
  return Pixels{image.dim(0), image.dim(1), static_cast<int>(image.dim(2)),
                dtype == tensorflow::DT_UINT16 ? 16 : 8,
                static_cast<const uint8_t*>(image.raw())};
}

absl::StatusOr<int> ReadIntBetween(const tensorflow::NodeDef& node,
                                   const char* name, int absent, int least,
                                   int most) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t value,
                           graph::GetIntOr(node, name, absent));
  if (value >= least && value <= most) return static_cast<int>(value);
  return absl::InvalidArgumentError(absl::StrCat(
      name, " must be from ", least, " to ", most, ", but is ", value));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePng(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_UINT8, tensorflow::DT_UINT16}));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "T", tensorflow::DT_UINT8));
  OPTFARM_ASSIGN_OR_RETURN(const int compression,
                           ReadIntBetween(node, "compression", -1, -1, 9));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const Pixels pixels,
                             ReadPixels(context->input(0), dtype, 4));
    OPTFARM_ASSIGN_OR_RETURN(const std::string file,
                             EncodePng(pixels, compression));
    context->SetOutput(0, Tensor::Scalar<std::string>(file));
    return absl::OkStatus();
  });
}

absl::StatusOr<JpegEncoding> ReadJpegEncoding(const tensorflow::NodeDef& node) {
  JpegEncoding encoding;
  OPTFARM_ASSIGN_OR_RETURN(encoding.quality,
                           ReadIntBetween(node, "quality", 95, 0, 100));
  OPTFARM_ASSIGN_OR_RETURN(encoding.is_progressive,
                           graph::GetBoolOr(node, "progressive", false));
  OPTFARM_ASSIGN_OR_RETURN(encoding.optimizes_size,
                           graph::GetBoolOr(node, "optimize_size", false));
  OPTFARM_ASSIGN_OR_RETURN(encoding.halves_chroma,
                           graph::GetBoolOr(node, "chroma_downsampling", true));
  OPTFARM_ASSIGN_OR_RETURN(const std::string unit,
                           graph::GetStringOr(node, "density_unit", "in"));
  if (unit != "in" && unit != "cm") {
    return absl::InvalidArgumentError(
        absl::StrCat("density_unit '", unit, "' is neither in nor cm"));
  }
  encoding.density_is_per_cm = unit == "cm";
  OPTFARM_ASSIGN_OR_RETURN(encoding.x_density,
                           ReadIntBetween(node, "x_density", 300, 0, 65535));
  OPTFARM_ASSIGN_OR_RETURN(encoding.y_density,
                           ReadIntBetween(node, "y_density", 300, 0, 65535));
  OPTFARM_ASSIGN_OR_RETURN(encoding.xmp_metadata,
                           graph::GetStringOr(node, "xmp_metadata", ""));
  return encoding;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJpeg(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const JpegEncoding encoding, ReadJpegEncoding(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::string format,
                           graph::GetStringOr(node, "format", ""));
  if (!format.empty() && format != "grayscale" && format != "rgb") {
    return absl::InvalidArgumentError(
        absl::StrCat("format '", format, "' is neither grayscale nor rgb"));
  }
  // 0: the image decides.
  const int channels = format.empty() ? 0 : format == "rgb" ? 3 : 1;
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(
        const Pixels pixels,
        ReadPixels(context->input(0), tensorflow::DT_UINT8, 3));
    if (pixels.channels == 2 ||
        (channels != 0 && pixels.channels != channels)) {
      return absl::InvalidArgumentError(
          absl::StrCat("an image of ", pixels.channels,
                       " channels cannot be written as format '", format, "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const std::string file,
                             EncodeJpeg(pixels, encoding));
    context->SetOutput(0, Tensor::Scalar<std::string>(file));
    return absl::OkStatus();
  });
}

}  // namespace

void AddEncodeImageKernels(KernelCatalog* catalog) {
  catalog->Add("EncodeJpeg", MakeJpeg);
  catalog->Add("EncodePng", MakePng);
}

}  // namespace optfarm::runtime
