// DecodeGif: all frames of an animation. A file of its own because the library
// may be left out (OPTFARM_EXTRA_OPS).

#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/images/gif.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeGif(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& contents = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(contents, "contents", tensorflow::DT_STRING));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(contents, "contents"));
    OPTFARM_ASSIGN_OR_RETURN(const Animation animation,
                             DecodeGif(*contents.data<std::string>()));
    const Picture& picture = animation.picture;
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out,
        context->AllocateOutput(
            0, tensorflow::DT_UINT8,
            Shape{animation.frames, picture.height, picture.width, 3}));
    absl::c_copy(picture.bytes, static_cast<uint8_t*>(out->raw()));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDecodeGifKernels(KernelCatalog* catalog) {
  catalog->Add("DecodeGif", MakeGif);
}

}  // namespace optfarm::runtime
