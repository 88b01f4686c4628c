// The two programs that draw points: where each one is, and a disc with a smooth edge.

export const VERTEX = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
layout(location = 0) in vec2 start;  // position at the step before
layout(location = 1) in vec2 end;    // position at the step after
layout(location = 2) in uint code;   // place of the color in the palette
uniform float between;               // 0 at start, 1 at end
uniform vec2 scale;
uniform vec2 shift;
uniform float size;                  // diameter in pixels of the screen, with room for the edge
uniform float opacity;
uniform vec4 fading;                 // color that faded points go to, and how far they go
uniform sampler2D palette;
out vec4 color;

// NaN, by its bits, as isnan() is not reliable in all drivers.
bool missing(vec2 at) {
  uvec2 bits = floatBitsToUint(at) & 0x7f800000u;
  return bits.x == 0x7f800000u || bits.y == 0x7f800000u;
}

void main() {
  if (missing(start) || missing(end)) {
    gl_Position = vec4(9.0, 9.0, 9.0, 1.0);
    gl_PointSize = 0.0;
    return;
  }
  gl_Position = vec4(mix(start, end, between) * scale + shift, 0.0, 1.0);
  gl_PointSize = size;
  vec3 own = texelFetch(palette, ivec2(int(code & 255u), int(code >> 8u)), 0).rgb;
  color = vec4(mix(own, fading.rgb, fading.a), opacity);
}`;

export const FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
uniform float size;
uniform vec4 edge;                   // color of the outline, and its strength
out vec4 result;

void main() {
  float radius = 0.5 * size - 0.5;
  float distance = length(gl_PointCoord - 0.5) * size;
  float cover = color.a * clamp(radius - distance + 0.5, 0.0, 1.0);
  float outline = edge.a * clamp(distance - radius + 1.5, 0.0, 1.0);
  result = vec4(mix(color.rgb, edge.rgb, outline) * cover, cover);
}`;
