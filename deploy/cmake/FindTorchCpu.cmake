# libtorch as Python's wheel brings it: its CPU libraries only.
#
# find_package(Torch) of that wheel demands a CUDA toolkit; these two imported
# libraries do not.  Its headers carry protobuf of another version, so they are
# given to gan_models' sources alone.
set(TORCH_VERSION 2.11.0)
file(GLOB TORCH_SITE ${CMAKE_SOURCE_DIR}/.deps/torch-${TORCH_VERSION}/lib/python3*/site-packages)
set(TORCH_SITE ${TORCH_SITE} CACHE PATH "site-packages folder that holds torch/")
if(NOT EXISTS ${TORCH_SITE}/torch/lib/libtorch_cpu.so)
  message(FATAL_ERROR "libtorch ${TORCH_VERSION} is not in .deps/: run deploy/setup.sh, or configure with "
                      "-DGOSSAMER_TORCH=OFF to build everything that needs no torch")
endif()
file(GLOB TORCH_NVIDIA_DIRS ${TORCH_SITE}/nvidia/cu13/lib ${TORCH_SITE}/nvidia/*/lib)

add_library(torch_c10 SHARED IMPORTED GLOBAL)
set_target_properties(torch_c10 PROPERTIES IMPORTED_LOCATION ${TORCH_SITE}/torch/lib/libc10.so)
add_library(torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(torch_cpu PROPERTIES
  IMPORTED_LOCATION ${TORCH_SITE}/torch/lib/libtorch_cpu.so
  INTERFACE_LINK_LIBRARIES torch_c10)
foreach(dir ${TORCH_NVIDIA_DIRS})
  target_link_options(torch_cpu INTERFACE "LINKER:-rpath-link,${dir}" "LINKER:-rpath,${dir}")
endforeach()
# Headers, for gan_models/*.cc only.
add_library(torch_headers INTERFACE)
target_include_directories(torch_headers SYSTEM INTERFACE
  ${TORCH_SITE}/torch/include ${TORCH_SITE}/torch/include/torch/csrc/api/include)
set(TorchCpu_FOUND TRUE)
