#include "engine/formats/tflite/sequences.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {

Value RealFloats(OpLowering& c, int i) {
  const Value value = c.Real(i);
  return c.status().ok() ? c.Cast(value, tensorflow::DT_FLOAT, "float") : value;
}

absl::Status KeepState(OpLowering& c, int input, const Value& real) {
  const int tensor = c.InputId(input);
  if (!c.subgraph().tensor(tensor).is_variable()) return absl::OkStatus();
  Value stored = real;
  if (IsQuantized(c.subgraph().tensor(tensor))) {
    OPTFARM_ASSIGN_OR_RETURN(
        stored,
        c.subgraph().Quantized(
            tensor, real, absl::StrCat(c.subgraph().NameOf(tensor), "/next")));
  }
  return c.subgraph().AssignState(tensor, stored);
}

Value OneStep(OpLowering& c, const Value& x) {
  return c.Add("ExpandDims", "step", {x, c.Int("step/axis", 0)});
}

Value OfOneStep(OpLowering& c, const Value& x) {
  return c.Add("Squeeze", "of_step", {x}, [](tensorflow::NodeDef* node) {
    SetInts(node, "squeeze_dims", {0});
  });
}

Value Reversed(OpLowering& c, const Value& x, int64_t axis,
               absl::string_view suffix) {
  return c.Add("ReverseV2", suffix,
               {x, c.IntVector(absl::StrCat(suffix, "/axis"), {axis})});
}

absl::StatusOr<DirectionInputs> InputsOfDirections(OpLowering& c, int auxiliary,
                                                   bool is_linked) {
  const Value x = RealFloats(c, 0);
  if (!c.Has(auxiliary)) {
    if (!is_linked) return DirectionInputs{x, x};
    return absl::InvalidArgumentError(absl::StrCat(
        "has weights for input ", auxiliary, ", which is missing"));
  }
  const Value other = RealFloats(c, auxiliary);
  if (!is_linked) return DirectionInputs{x, other};
  const Value both =
      c.Add("ConcatV2", "linked", {x, other, c.Int("linked/axis", 2)});
  return DirectionInputs{both, both};
}

absl::Status SetDirections(OpLowering& c, const Value& forward,
                           const Value& backward, bool merges) {
  if (merges) {
    c.SetReal(0, c.Add("ConcatV2", "directions",
                       {forward, backward, c.Int("directions/axis", 2)}));
    return absl::OkStatus();
  }
  if (c.output_count() < 2) {
    return absl::InvalidArgumentError("has fewer than 2 outputs");
  }
  c.SetReal(0, forward);
  c.SetReal(1, backward);
  return absl::OkStatus();
}

}  // namespace optfarm::tflite
