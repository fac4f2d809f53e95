// Files to pixels: DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeBmp,
// DecodeImage (which looks at the file), ExtractJpegShape; and DecodeRaw.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/picture.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<absl::string_view> ReadContents(const Tensor& tensor) {
  OPTFARM_RETURN_IF_ERROR(
      RequireDtype(tensor, "contents", tensorflow::DT_STRING));
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(tensor, "contents"));
  return absl::string_view(*tensor.data<std::string>());
}

absl::StatusOr<int> ReadChannels(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           graph::GetIntOr(node, "channels", 0));
  if (channels < 0 || channels > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels must be from 0 to 4, but is ", channels));
  }
  return static_cast<int>(channels);
}

absl::StatusOr<pictures::JpegOptions> ReadJpegOptions(
    const tensorflow::NodeDef& node) {
  pictures::JpegOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.channels, ReadChannels(node));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t ratio,
                           graph::GetIntOr(node, "ratio", 1));
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("ratio must be 1, 2, 4 or 8, but is ", ratio));
  }
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a JPEG has 1 or 3 channels, not ", options.channels));
  }
  options.ratio = static_cast<int>(ratio);
  OPTFARM_ASSIGN_OR_RETURN(options.fancy_upscaling,
                           graph::GetBoolOr(node, "fancy_upscaling", true));
  OPTFARM_ASSIGN_OR_RETURN(
      options.may_be_truncated,
      graph::GetBoolOr(node, "try_recover_truncated", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::string dct,
                           graph::GetStringOr(node, "dct_method", ""));
  options.use_fast_dct = dct == "INTEGER_FAST";
  return options;
}

absl::Status StorePicture(const Picture& picture, DataType dtype,
                          KernelContext* context) {
  const int64_t dims[] = {picture.height, picture.width, picture.channels};
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           context->AllocateOutput(0, dtype, shape));
  std::memcpy(out->raw(), picture.bytes.data(), picture.bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJpeg(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const pictures::JpegOptions options,
                           ReadJpegOptions(node));
  return MakeKernel([options](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(const Picture picture,
                             DecodeJpeg(contents, options));
    return StorePicture(picture, tensorflow::DT_UINT8, context);
  });
}

// `window` is top, left, height, width.
absl::StatusOr<Picture> Cropped(const Picture& picture,
                                const std::vector<int64_t>& window) {
  const bool fits = window.size() == 4 && window[0] >= 0 && window[1] >= 0 &&
                    window[2] > 0 && window[3] > 0 &&
                    window[0] <= picture.height && window[1] <= picture.width &&
                    window[2] <= picture.height - window[0] &&
                    window[3] <= picture.width - window[1];
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("crop_window does not lie within a picture of ",
                     picture.height, " x ", picture.width));
  }
  Picture cropped{window[2], window[3], picture.channels, {}};
  const int64_t row = cropped.width * picture.channels;
  for (int64_t y = 0; y < cropped.height; ++y) {
    const uint8_t* from =
        picture.bytes.data() +
        ((window[0] + y) * picture.width + window[1]) * picture.channels;
    cropped.bytes.insert(cropped.bytes.end(), from, from + row);
  }
  return cropped;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCroppedJpeg(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const pictures::JpegOptions options,
                           ReadJpegOptions(node));
  return MakeKernel([options](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> window,
                             ReadIntegers(context->input(1), "crop_window"));
    OPTFARM_ASSIGN_OR_RETURN(const Picture picture,
                             DecodeJpeg(contents, options));
    OPTFARM_ASSIGN_OR_RETURN(const Picture cropped, Cropped(picture, window));
    return StorePicture(cropped, tensorflow::DT_UINT8, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePng(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "dtype", {tensorflow::DT_UINT8, tensorflow::DT_UINT16}));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "dtype", tensorflow::DT_UINT8));
  OPTFARM_ASSIGN_OR_RETURN(const int channels, ReadChannels(node));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(
        const Picture picture,
        DecodePng(contents,
                  {channels, dtype == tensorflow::DT_UINT16 ? 16 : 8}));
    return StorePicture(picture, dtype, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBmp(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int channels, ReadChannels(node));
  return MakeKernel([channels](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(const Picture picture,
                             DecodeBmp(contents, channels));
    return StorePicture(picture, tensorflow::DT_UINT8, context);
  });
}

absl::StatusOr<Picture> DecodeAny(absl::string_view contents, int channels) {
  if (absl::StartsWith(contents, "\x89PNG")) {
    return DecodePng(contents, {channels, 8});
  }
  if (absl::StartsWith(contents, "BM")) return DecodeBmp(contents, channels);
  if (absl::StartsWith(contents, "\xff\xd8")) {
    pictures::JpegOptions options;
    if (channels != 0 && channels != 1 && channels != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("a JPEG has 1 or 3 channels, not ", channels));
    }
    options.channels = channels;
    return DecodeJpeg(contents, options);
  }
  return absl::InvalidArgumentError(
      "the contents are neither a JPEG nor a PNG nor a BMP");
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAny(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "dtype", {tensorflow::DT_UINT8, tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "dtype", tensorflow::DT_UINT8));
  OPTFARM_ASSIGN_OR_RETURN(const int channels, ReadChannels(node));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(const Picture picture,
                             DecodeAny(contents, channels));
    if (dtype == tensorflow::DT_UINT8) {
      return StorePicture(picture, dtype, context);
    }
    const int64_t dims[] = {picture.height, picture.width, picture.channels};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    std::transform(
        picture.bytes.begin(), picture.bytes.end(), out->data<float>(),
        [](uint8_t byte) { return static_cast<float>(byte) / 255.0f; });
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeJpegShape(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "output_type", OPTFARM_INDEX_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "output_type", tensorflow::DT_INT32));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view contents,
                             ReadContents(context->input(0)));
    OPTFARM_ASSIGN_OR_RETURN(const Picture picture,
                             DecodeJpeg(contents, pictures::JpegOptions()));
    const int64_t dims[] = {picture.height, picture.width, picture.channels};
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, Shape{3}));
    return VisitInteger(dtype, "output_type", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int i = 0; i < 3; ++i) out->data<T>()[i] = static_cast<T>(dims[i]);
      return absl::OkStatus();
    });
  });
}

// The bytes of texts of `length` each as elements of `dtype`, whose byte order
// is the other one where `is_swapped`.
void CopyRaw(absl::Span<const std::string> texts, size_t length, DataType dtype,
             bool is_swapped, uint8_t* to) {
  for (size_t i = 0; i < texts.size(); ++i) {
    std::memcpy(to + i * length, texts[i].data(), length);
  }
  const size_t bytes = texts.size() * length;
  const bool is_complex =
      dtype == tensorflow::DT_COMPLEX64 || dtype == tensorflow::DT_COMPLEX128;
  const size_t element = ElementSize(dtype);
  const size_t unit = is_complex ? element / 2 : element;
  for (size_t i = 0; is_swapped && i + unit <= bytes; i += unit) {
    std::reverse(to + i, to + i + unit);
  }
  for (size_t i = 0; dtype == tensorflow::DT_BOOL && i < bytes; ++i) {
    to[i] = to[i] != 0;
  }
}

// The bytes of each text as numbers; all texts have one length.
absl::StatusOr<std::unique_ptr<Kernel>> MakeRaw(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "out_type",
      {tensorflow::DT_HALF, tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
       tensorflow::DT_INT8, tensorflow::DT_INT16, tensorflow::DT_INT32,
       tensorflow::DT_INT64, tensorflow::DT_UINT8, tensorflow::DT_UINT16,
       tensorflow::DT_BOOL, tensorflow::DT_COMPLEX64,
       tensorflow::DT_COMPLEX128}));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetType(node, "out_type"));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_little,
                           graph::GetBoolOr(node, "little_endian", true));
  const bool is_swapped =
      is_little != (std::endian::native == std::endian::little);
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& texts = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(texts, "bytes", tensorflow::DT_STRING));
    const size_t element = ElementSize(dtype);
    const auto flat = texts.flat<std::string>();
    const size_t length = flat.empty() ? 0 : flat[0].size();
    for (const std::string& text : flat) {
      if (text.size() != length || length % element != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "all texts must have one length, a multiple of ", element,
            ", but lengths ", length, " and ", text.size(), " come"));
      }
    }
    std::vector<int64_t> dims(texts.shape().dims().begin(),
                              texts.shape().dims().end());
    dims.push_back(static_cast<int64_t>(length / element));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, shape));
    CopyRaw(flat, length, dtype, is_swapped, static_cast<uint8_t*>(out->raw()));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDecodeImageKernels(KernelCatalog* catalog) {
  catalog->Add("DecodeJpeg", MakeJpeg);
  catalog->Add("DecodeAndCropJpeg", MakeCroppedJpeg);
  catalog->Add("DecodePng", MakePng);
  catalog->Add("DecodeBmp", MakeBmp);
  catalog->Add("DecodeImage", MakeAny);
  catalog->Add("ExtractJpegShape", MakeJpegShape);
  catalog->Add("DecodeRaw", MakeRaw);
}

}  // namespace optfarm::runtime
