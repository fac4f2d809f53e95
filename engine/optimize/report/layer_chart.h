// A picture of where an optimized graph loses: a bar for each layer.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// An SVG document: signal to noise of the layers that were compared, in the
// order given, longer bars for cleaner layers. The same bytes for the same
// layers.
std::string DrawLayers(absl::Span<const v1::TensorComparison> layers);

// The same with two bars a layer: quantized alone, and with all others.
std::string DrawSensitivity(absl::Span<const v1::LayerSensitivity> layers);

// XML's five characters as entities; what XML does not have, and bytes that may
// be no UTF-8, as question marks.
std::string EscapedForXml(absl::string_view text);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_
