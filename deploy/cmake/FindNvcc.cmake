# A CUDA compiler, called directly: nvcc of PyPI's packages, which
# deploy/setup.sh --for cuda puts into .deps/, else of an installed toolkit.
#
#   gossamer_cuda_objects(OBJECTS a.cu ...)   compiles each; OBJECTS lists the results
#
# CMake's own CUDA language wants a toolkit's folders, which the packages do not
# have.  GOSSAMER_CUDART is the runtime that programs contain; it opens the
# driver by itself.  NVCC_INCLUDE has the runtime's headers.
set(CUDA_PACKAGES_VERSION 13.0)
file(GLOB packages ${CMAKE_SOURCE_DIR}/.deps/cuda-${CUDA_PACKAGES_VERSION}/lib/python3*/site-packages/nvidia/cu13/bin)
find_program(NVCC nvcc HINTS ${packages} $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
if(NOT NVCC)
  message(FATAL_ERROR "there is no nvcc: run deploy/setup.sh --for cuda, set CUDA_HOME to a CUDA 13 toolkit, or "
                      "configure without -DGOSSAMER_CUDA=ON")
endif()
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE version)
string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" version "${version}")
set(NVCC_VERSION ${CMAKE_MATCH_1})
if(NVCC_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "${NVCC} is of CUDA ${NVCC_VERSION}; gossamer needs 13.0 or later: deploy/setup.sh --for cuda")
endif()
get_filename_component(root ${NVCC} REALPATH)
get_filename_component(root ${root} DIRECTORY)
get_filename_component(root ${root} DIRECTORY)
set(NVCC_INCLUDE ${root}/include)
find_library(GOSSAMER_CUDART cudart_static HINTS ${root}/lib64 ${root}/lib NO_DEFAULT_PATH REQUIRED)

# Turing, Ampere, Hopper, Blackwell, and what comes later from the last one's
# intermediate code; GPUs between them run the code of the one before.
set(architectures)
foreach(a 75 80 90 100)
  list(APPEND architectures -gencode=arch=compute_${a},code=sm_${a})
endforeach()
list(APPEND architectures -gencode=arch=compute_100,code=compute_100)

# Results are those of the host's kernels to the bit: no fused multiply-add, and
# of the rest nvcc's defaults are exact division, exact roots and denormals.
set(nvcc_options -std=c++20 -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true --expt-relaxed-constexpr
  ${architectures} -ccbin ${CMAKE_CXX_COMPILER} -Werror all-warnings -I${CMAKE_SOURCE_DIR}
  -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-unused-parameter,-Werror,-ffp-contract=off)

function(gossamer_cuda_objects OBJECTS)
  set(objects)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${NVCC} ${nvcc_options} -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPFILE ${object}.d
      COMMENT "Compiling ${source} for GPUs"
      VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    list(APPEND objects ${object})
  endforeach()
  set(${OBJECTS} ${objects} PARENT_SCOPE)
endfunction()
set(Nvcc_FOUND TRUE)
