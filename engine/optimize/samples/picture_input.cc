#include "engine/optimize/samples/picture_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/samples/image.h"
#include "engine/graph/attr.h"

namespace optfarm::optimize {
namespace {

using formats::FloatImage;
using formats::Image;

// UNITS: pixels.
constexpr int64_t kMaxSide = 1 << 14;

struct Layout {
  int64_t height = -1;
  int64_t width = -1;
  int64_t channels = -1;
  bool channels_first = false;
};

bool IsChannels(int64_t dim) { return dim == 1 || dim == 3; }

int64_t SquareRoot(int64_t area) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(area)));
  return side * side == area ? side : -1;
}

// A flat input of 784 is 28 x 28 grey, one of 3072 is 32 x 32 x 3.
Layout LayoutOfFlat(int64_t elements) {
  if (const int64_t side = SquareRoot(elements); side > 0) {
    return {side, side, 1};
  }
  if (elements % 3 == 0) {
    if (const int64_t side = SquareRoot(elements / 3); side > 0) {
      return {side, side, 3};
    }
  }
  return {};
}

absl::Status CannotTakePictures(const ModelTensor& input,
                                absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "Pictures cannot be fed to input '", graph::ToString(input.name), "': ",
      why, "; give the samples as ", graph::ToString(input.name), "=FILE.npy"));
}

// Where height, width and channels stand in the input's shape.
absl::StatusOr<Layout> FindLayout(const ModelTensor& input) {
  if (!input.shape.has_value()) {
    return Layout{};
  }
  const std::vector<int64_t>& shape = *input.shape;
  const size_t rank = shape.size();
  if ((rank == 4 || rank == 2) && shape[0] > 1) {
    return CannotTakePictures(
        input, absl::StrCat("it takes ", shape[0], " samples at once"));
  }
  switch (rank) {
    case 4:
      if (IsChannels(shape[1]) && !IsChannels(shape[3])) {
        return Layout{shape[2], shape[3], shape[1], true};
      }
      return Layout{shape[1], shape[2], shape[3]};
    case 3:
      // [height, width, channels], [channels, height, width] or [batch, height,
      // width].
      if (IsChannels(shape[2])) return Layout{shape[0], shape[1], shape[2]};
      if (shape[0] == 3) return Layout{shape[1], shape[2], shape[0], true};
      if (shape[0] == 1 || shape[0] == -1) return Layout{shape[1], shape[2], 1};
      break;
    case 2:
      if (shape[1] > 0) return LayoutOfFlat(shape[1]);
      break;
    default:
      break;
  }
  return CannotTakePictures(
      input, absl::StrCat("its shape is [", absl::StrJoin(shape, ","), "]"));
}

// One value a channel from a list of one or as many as channels.
absl::StatusOr<std::vector<double>> PerChannel(const std::vector<double>& given,
                                               int channels,
                                               absl::string_view what) {
  if (given.size() == 1) return std::vector<double>(channels, given[0]);
  if (static_cast<int>(given.size()) != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("The recipe's preprocessing.", what, " has ", given.size(),
                     " values for ", channels, " channels"));
  }
  return given;
}

void SetShape(const ModelTensor& input, PictureInput* plan) {
  const size_t rank = input.shape.has_value() ? input.shape->size() : 4;
  const int64_t h = plan->height;
  const int64_t w = plan->width;
  const int64_t c = plan->channels;
  if (rank == 2) {
    plan->shape = {1, h * w * c};
  } else if (rank == 4) {
    plan->shape = {1, h, w, c};
    if (plan->channels_first) plan->shape = {1, c, h, w};
  } else if (plan->channels_first) {
    plan->shape = {c, h, w};
  } else if (IsChannels((*input.shape)[2])) {
    plan->shape = {h, w, c};
  } else {
    plan->shape = {1, h, w};
  }
}

absl::StatusOr<FloatImage> Resized(const Image& image,
                                   const PictureInput& plan) {
  const int height = plan.height > 0 ? plan.height : image.height;
  const int width = plan.width > 0 ? plan.width : image.width;
  if (plan.resize == v1::Preprocessing::NONE &&
      (height != image.height || width != image.width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the picture has ", image.height, "x", image.width,
                     " pixels; the input wants ", height, "x", width,
                     " and the recipe's preprocessing says resize: none"));
  }
  if (plan.resize != v1::Preprocessing::SHORTER_SIDE) {
    return formats::ResizeBilinear(image, height, width);
  }
  const double scale = std::max(static_cast<double>(height) / image.height,
                                static_cast<double>(width) / image.width);
  const auto scaled = [scale](int side, int least) {
    const double wanted = std::round(side * scale);
    return static_cast<int>(
        std::clamp<double>(wanted, least, static_cast<double>(kMaxSide) * 4));
  };
  return formats::CropCentre(
      formats::ResizeBilinear(image, scaled(image.height, height),
                              scaled(image.width, width)),
      height, width);
}

// The value of a decoded picture.
absl::StatusOr<runtime::Tensor> ValueOf(Image image, const PictureInput& plan) {
  if (plan.central_crop < 1) {
    image = formats::CropCentre(image, plan.central_crop);
  }
  OPTFARM_ASSIGN_OR_RETURN(const FloatImage resized, Resized(image, plan));
  std::vector<int64_t> dims = plan.shape;
  if (dims.size() == 4) {
    const size_t rows = plan.channels_first ? 2 : 1;
    dims[rows] = resized.height;
    dims[rows + 1] = resized.width;
  }
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(dims));
  if (shape.num_elements() != static_cast<int64_t>(resized.pixels.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the picture does not fill shape ", shape.ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(runtime::Tensor tensor,
                           runtime::Tensor::Allocate(plan.dtype, shape));
  const size_t c = plan.channels;
  const size_t area = resized.pixels.size() / c;
  for (size_t i = 0; i < resized.pixels.size(); ++i) {
    const size_t k = i % c;
    const float value = resized.pixels[plan.bgr ? i - k + (c - 1 - k) : i];
    const size_t at = plan.channels_first ? k * area + i / c : i;
    const float level = std::clamp(std::round(value), 0.0f, 255.0f);
    if (plan.dtype == tensorflow::DT_UINT8) {
      tensor.data<uint8_t>()[at] = static_cast<uint8_t>(level);
    } else if (plan.dtype == tensorflow::DT_INT8) {
      tensor.data<int8_t>()[at] = static_cast<int8_t>(level - 128);
    } else {
      tensor.data<float>()[at] = (value - static_cast<float>(plan.mean[k])) /
                                 static_cast<float>(plan.std[k]);
    }
  }
  return tensor;
}

}  // namespace

std::string PictureInput::Describe() const {
  std::string text;
  if (central_crop < 1) {
    absl::StrAppend(&text, "middle ", central_crop * 100, " %, ");
  }
  const std::string size = absl::StrCat(height, "x", width);
  if (height == 0) {
    absl::StrAppend(&text, "in their own size");
  } else if (resize == v1::Preprocessing::SHORTER_SIDE) {
    absl::StrAppend(&text, "shorter side resized and middle cut to ", size);
  } else if (resize == v1::Preprocessing::NONE) {
    absl::StrAppend(&text, "of ", size);
  } else {
    absl::StrAppend(&text, "resized to ", size);
  }
  absl::StrAppend(&text, ", ", channels == 1 ? "grey" : (bgr ? "BGR" : "RGB"));
  const auto list = [](const std::vector<double>& values) {
    const bool same = std::all_of(values.begin(), values.end(),
                                  [&](double v) { return v == values[0]; });
    return same ? absl::StrCat(values[0])
                : absl::StrCat("[", absl::StrJoin(values, ","), "]");
  };
  if (dtype == tensorflow::DT_FLOAT) {
    absl::StrAppend(&text, ", (value - ", list(mean), ") / ", list(std));
  } else if (dtype == tensorflow::DT_INT8) {
    absl::StrAppend(&text, ", value - 128");
  }
  return text;
}

absl::StatusOr<PictureInput> PlanPictureInput(
    const ModelTensor& input, const v1::Preprocessing& preprocessing,
    const Normalization& normalization) {
  if (input.dtype != tensorflow::DT_FLOAT &&
      input.dtype != tensorflow::DT_UINT8 &&
      input.dtype != tensorflow::DT_INT8) {
    return CannotTakePictures(
        input, absl::StrCat("its type is ", graph::DataTypeName(input.dtype)));
  }
  OPTFARM_ASSIGN_OR_RETURN(Layout layout, FindLayout(input));
  PictureInput plan;
  plan.dtype = input.dtype;
  if (preprocessing.resize() != v1::Preprocessing::RESIZE_UNSPECIFIED) {
    plan.resize = preprocessing.resize();
  }
  if (layout.height < 0) layout.height = preprocessing.height();
  if (layout.width < 0) layout.width = preprocessing.width();
  const bool own_size = plan.resize == v1::Preprocessing::NONE;
  if ((layout.height <= 0 || layout.width <= 0) && !own_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The height and width of input '", graph::ToString(input.name),
        "' are not known, so pictures cannot be resized to it; give its shape, "
        "for instance --inputs=",
        graph::ToString(input.name),
        ":1,224,224,3, or preprocessing.height and .width in the recipe"));
  }
  if (layout.height > kMaxSide || layout.width > kMaxSide) {
    return CannotTakePictures(
        input,
        absl::StrCat("it wants ", layout.height, "x", layout.width, " pixels"));
  }
  plan.height = static_cast<int>(std::max<int64_t>(layout.height, 0));
  plan.width = static_cast<int>(std::max<int64_t>(layout.width, 0));
  const bool grey = preprocessing.channel_order() == v1::Preprocessing::GRAY;
  if (layout.channels < 0) layout.channels = grey ? 1 : 3;
  if (layout.channels != 1 && layout.channels != 3) {
    return CannotTakePictures(
        input, absl::StrCat("it has ", layout.channels, " channels"));
  }
  plan.channels = static_cast<int>(layout.channels);
  plan.channels_first = layout.channels_first;
  plan.bgr = preprocessing.channel_order() == v1::Preprocessing::BGR &&
             plan.channels == 3;
  if (preprocessing.central_crop() > 0) {
    plan.central_crop = preprocessing.central_crop();
  }
  OPTFARM_ASSIGN_OR_RETURN(
      plan.mean, PerChannel(normalization.mean, plan.channels, "mean"));
  OPTFARM_ASSIGN_OR_RETURN(plan.std,
                           PerChannel(normalization.std, plan.channels, "std"));
  plan.scale_unknown =
      normalization.is_default && plan.dtype == tensorflow::DT_FLOAT;
  SetShape(input, &plan);
  return plan;
}

absl::StatusOr<runtime::Tensor> PictureFromBytes(absl::string_view bytes,
                                                 const PictureInput& plan) {
  OPTFARM_ASSIGN_OR_RETURN(Image image,
                           formats::DecodeImage(bytes, plan.channels));
  return ValueOf(std::move(image), plan);
}

absl::StatusOr<runtime::Tensor> ReadPicture(const std::string& path,
                                            const PictureInput& plan) {
  OPTFARM_ASSIGN_OR_RETURN(Image image,
                           formats::LoadImage(path, plan.channels));
  return ValueOf(std::move(image), plan);
}

}  // namespace optfarm::optimize
