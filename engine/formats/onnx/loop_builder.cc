#include "engine/formats/onnx/loop_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

// Sizes that differ from trip to trip are not known; the number of dimensions
// is taken to stay.
PartialShape LoopShape(const PartialShape& initial) {
  return initial.has_rank() ? PartialShape::OfRank(initial.rank())
                            : PartialShape();
}

Endpoint ElementShape(GraphBuilder& builder, const PartialShape& shape) {
  if (!shape.has_rank()) return builder.Int32(-1);
  return builder.Int32s(
      std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
}

}  // namespace

SubgraphArgument LoopBuilder::AddVariable(Endpoint initial) {
  variables_.push_back(initial);
  return {n_.dtype(initial), LoopShape(n_.shape(initial))};
}

SubgraphArgument LoopBuilder::AddScanned(Endpoint tensor) {
  scanned_.push_back(tensor);
  return {n_.dtype(tensor), n_.shape(tensor).Slice(1)};
}

// Goes on while the number is below the count and the condition holds.
absl::StatusOr<tensorflow::AttrValue> LoopBuilder::Condition(
    const std::vector<DataType>& types) {
  GraphBuilder builder;
  std::vector<Endpoint> inputs(types.size());
  for (size_t i = 0; i < 3; ++i) {
    inputs[i] = builder.AddPlaceholder(absl::StrCat("argument_", i), types[i],
                                       PartialShape::Scalar());
  }
  const Endpoint more = builder.Add("Less", {inputs[0], inputs[1]});
  const Endpoint go_on = builder.Add("LogicalAnd", {more, inputs[2]});
  OPTFARM_RETURN_IF_ERROR(builder.TakeStatus());
  return AddFunction(&n_.reader().model(), "while", builder, inputs, types,
                     {go_on});
}

// A list that each trip adds an element to.
void LoopBuilder::AddList(GraphBuilder& inside, Endpoint element,
                          Wires* wires) {
  const DataType type = inside.dtype(element);
  GraphBuilder& outside = n_.builder();
  const Endpoint empty = n_.Add(
      "EmptyTensorList", {ElementShape(outside, PartialShape()), n_.Int32(-1)},
      {{"element_dtype", type}});
  const Endpoint list = inside.AddPlaceholder("list", tensorflow::DT_VARIANT,
                                              PartialShape::Scalar());
  wires->Add(empty, tensorflow::DT_VARIANT, list,
             inside.Add("TensorListPushBack", {list, element}));
}

absl::StatusOr<std::vector<Endpoint>> LoopBuilder::Build(
    const OnnxSubgraph& body, const LoopBody& results) {
  GraphBuilder& inside = *body.builder;
  const bool has_condition = results.condition.node != graph::kNoNode;
  std::vector<Endpoint> collected = results.collected;
  size_t next_argument = 0;
  Wires wires;
  const auto argument = [&](Endpoint outside) {
    if (next_argument < body.arguments.size()) {
      return body.arguments[next_argument++];
    }
    return inside.AddPlaceholder("argument", n_.dtype(outside),
                                 n_.shape(outside));
  };
  const auto placeholder = [&](const char* name, DataType type) {
    return inside.AddPlaceholder(name, type, PartialShape::Scalar());
  };
  const Endpoint number = has_condition
                              ? body.arguments[next_argument++]
                              : placeholder("number", tensorflow::DT_INT64);
  wires.Add(
      n_.builder().Scalar(tensorflow::DT_INT64, 0), tensorflow::DT_INT64,
      number,
      inside.Add("Add", {number, inside.Scalar(tensorflow::DT_INT64, 1)}));
  const Endpoint count = placeholder("count", tensorflow::DT_INT64);
  wires.Add(count_, tensorflow::DT_INT64, count, count);
  const Endpoint condition = has_condition
                                 ? body.arguments[next_argument++]
                                 : placeholder("go_on", tensorflow::DT_BOOL);
  wires.Add(condition_, tensorflow::DT_BOOL, condition,
            has_condition
                ? inside.Add("Reshape", {results.condition, inside.Int32s({})})
                : condition);
  for (size_t i = 0; i < variables_.size(); ++i) {
    const DataType type = n_.dtype(variables_[i]);
    if (inside.dtype(results.variables[i]) != type) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", i, " changes its type"));
    }
    wires.Add(variables_[i], type, argument(variables_[i]),
              results.variables[i]);
  }
  for (const Endpoint& tensor : scanned_) {
    // The subgraph reads the part of this trip in place of its argument.
    const Endpoint part = argument(tensor);
    const Endpoint whole =
        inside.AddPlaceholder("scanned", n_.dtype(tensor), n_.shape(tensor));
    const Endpoint picked =
        inside.Add("GatherV2", {whole, number, inside.Int32(0)});
    inside.graph().RedirectUses(part, picked);
    std::replace(wires.next.begin(), wires.next.end(), part, picked);
    std::replace(collected.begin(), collected.end(), part, picked);
    wires.Add(tensor, n_.dtype(tensor), whole, whole);
  }
  for (const OnnxGraphReader::Capture& capture : body.captures()) {
    wires.Add(capture.outside, n_.dtype(capture.outside), capture.inside,
              capture.inside);
  }
  const size_t first_list = wires.initial.size();
  for (const Endpoint& element : collected) {
    AddList(inside, element, &wires);
  }
  OPTFARM_RETURN_IF_ERROR(inside.TakeStatus());
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::AttrValue cond, Condition(wires.types));
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::AttrValue function,
                           AddFunction(&n_.reader().model(), "body", inside,
                                       wires.inside, wires.types, wires.next));
  const std::vector<Endpoint> ends = n_.AddAll("StatelessWhile", wires.initial,
                                               {{"T", wires.types},
                                                {"cond", std::move(cond)},
                                                {"body", std::move(function)}});
  std::vector<Endpoint> outputs;
  for (size_t i = 0; i < variables_.size() && i + 3 < ends.size(); ++i) {
    n_.builder().SetShape(ends[i + 3], LoopShape(n_.shape(variables_[i])));
    outputs.push_back(ends[i + 3]);
  }
  for (size_t i = 0; i < collected.size() && first_list + i < ends.size();
       ++i) {
    const PartialShape element = inside.shape(collected[i]);
    const Endpoint stacked =
        n_.Add("TensorListStack",
               {ends[first_list + i], ElementShape(n_.builder(), element)},
               {{"element_dtype", inside.dtype(collected[i])}});
    if (element.has_rank()) {
      n_.builder().SetShape(
          stacked, graph::ConcatenateShapes(PartialShape::OfRank(1), element)
                       .value_or(PartialShape()));
    }
    outputs.push_back(stacked);
  }
  return outputs;
}

}  // namespace optfarm::formats
