// What the transforms share that fuse resizing and padding into a convolution:
// which convolutions can be fused, and how one becomes a fused op.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FOLDING_FUSED_CONVOLUTION_H_
#define OPTFARM_ENGINE_TRANSFORMS_FOLDING_FUSED_CONVOLUTION_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// The fused ops know only batches of channels-last pictures, no dilation and no
// explicit padding of their own.
// ERRORS: FailedPrecondition that says why the Conv2D cannot be fused.
absl::Status CheckFusableConvolution(const graph::Node& conv);

// The same for a ResizeBilinear in front of `conv`: it has to be of the
// convolution's type and not sample at half pixel centres.
absl::Status CheckFusableResize(const graph::Node& resize,
                                const graph::Node& conv);

// The same for a MirrorPad: its paddings have to be constant, int32, and about
// height and width alone.
absl::Status CheckFusablePad(const graph::Graph& graph, graph::NodeId pad);

// Turns `conv` into `op` with these inputs. Of its attributes T, padding and
// strides stay; it waits for what the nodes `fused` waited for, and those of
// them that are not used any more are removed.
void BecomeFused(graph::NodeId conv, absl::string_view op,
                 absl::Span<const graph::Endpoint> inputs,
                 const std::vector<graph::NodeId>& fused,
                 const TransformContext& context, graph::Graph* graph);

// Fuses the places of `pattern` that `check` finds fit; skips the others with
// its reason, at the node "conv" of the pattern. ERRORS: InvalidArgument for a
// cyclic graph.
absl::Status FuseMatches(
    graph::Graph* graph, const Pattern& pattern, TransformContext* context,
    absl::FunctionRef<absl::Status(const graph::Graph&, const Match&,
                                   const TransformContext&)>
        check,
    absl::FunctionRef<void(const Match&)> fuse);

// Each fuses all places of its pattern. Those that cannot be fused are skipped
// with the reason.
// ERRORS: InvalidArgument for a cyclic graph.
absl::Status FuseResizePadAndConv(graph::Graph* graph,
                                  TransformContext* context);
absl::Status FuseResizeAndConv(graph::Graph* graph, TransformContext* context);
absl::Status FusePadAndConv(graph::Graph* graph, TransformContext* context);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FOLDING_FUSED_CONVOLUTION_H_
