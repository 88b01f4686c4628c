"""The colors of classes in plots: ten of different names, and twenty more far from all others.

The first ten are colors of ten names, each moved by at most 8 (CIEDE2000) from one chosen by hand,
in a random search for the largest smallest distance in normal vision, deuteranopia and protanopia
(the linear model of Vienot, Brettel and Mollon, 1999). Each further one is the color of a grid in
CIELAB, neither too light on white paper nor nearly black, with the largest smallest distance
(CIEDE2000) to white and to the colors before it; a distance in deficient vision counts `FACTOR`
times. It prints the colors and their smallest distances.
"""

import numpy as np
from matplotlib.colors import to_hex, to_rgb

FIRST = (
    *("#106dff", "#dd8516", "#047c63", "#ca1140", "#711391"),
    *("#653805", "#c57bb8", "#99a097", "#f2d659", "#22e6fe"),
)
FACTOR = 3.0  # a difference in deficient vision counts as much as one this large in normal vision
LIGHTNESS, CHROMA = np.arange(32.0, 84.0, 4.0), np.arange(0.0, 105.0, 12.0)
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)
DEFICIENT = {
    "deuteranopia": [[0.292, 0.708, 0.0], [0.292, 0.708, 0.0], [-0.022, 0.022, 1.0]],
    "protanopia": [[0.113, 0.887, 0.0], [0.113, 0.887, 0.0], [0.004, -0.004, 1.0]],
}


def main():
    """Choose the colors and print them."""
    rgb = np.vstack([[1, 1, 1], [to_rgb(color) for color in FIRST], candidates()])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = [linear, *(np.clip(linear @ np.array(M).T, 0, 1) for M in DEFICIENT.values())]
    normal, *deficient = [differences(lab(colors)) for colors in seen]
    D = np.minimum(normal, FACTOR * np.minimum(*deficient))
    chosen = list(range(len(FIRST) + 1))
    while len(chosen) < 31:
        chosen.append(int(D[chosen].min(axis=0).argmax()))
    print([to_hex(rgb[i]) for i in chosen[1:]])
    for count in (10, 20, 30):
        among = np.ix_(chosen[1 : count + 1], chosen[1 : count + 1])
        least = [
            (each[among] + 1e3 * np.eye(count)).min().round(1) for each in (normal, *deficient)
        ]
        print(
            count,
            "colors: smallest distance",
            dict(zip(["normal", *DEFICIENT], least, strict=True)),
        )


def candidates():
    """Colors of a grid of lightness, chroma and hue that a screen can show."""
    hue = np.radians(np.arange(0, 360, 12))
    L, C, h = (each.ravel() for each in np.meshgrid(LIGHTNESS, CHROMA, hue))
    f = (L + 16) / 116
    f = np.column_stack([f + C * np.cos(h) / 500, f, f - C * np.sin(h) / 200])
    XYZ = WHITE * np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29))
    linear = XYZ @ np.linalg.inv(TO_XYZ).T
    shown = linear[((linear >= 0) & (linear <= 1)).all(axis=1)]
    rgb = np.where(shown <= 0.0031308, 12.92 * shown, 1.055 * shown ** (1 / 2.4) - 0.055)
    return np.unique(np.round(rgb * 255) / 255, axis=0)


def lab(linear):
    """CIELAB coordinates of linear RGB."""
    t = linear @ TO_XYZ.T / WHITE
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.column_stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )


def differences(colors):
    """CIEDE2000 differences of all pairs (CIE 142, 2001)."""
    L, a, b = (column[:, None] for column in colors.T)
    C = np.hypot(a, b)
    mean = (C + C.T) / 2
    G = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = (1 + G) * a, (1 + G) * a.T
    C1, C2 = np.hypot(a1, b), np.hypot(a2, b.T)
    h1, h2 = np.arctan2(b, a1) % (2 * np.pi), np.arctan2(b.T, a2) % (2 * np.pi)
    turn = (h2 - h1 + np.pi) % (2 * np.pi) - np.pi
    dH = 2 * np.sqrt(C1 * C2) * np.sin(turn / 2)
    h = np.where(C1 * C2 > 0, h1 + turn / 2, h1 + h2) % (2 * np.pi)
    light, chroma = (L + L.T) / 2, (C1 + C2) / 2
    T = (
        1
        - 0.17 * np.cos(h - np.radians(30))
        + 0.24 * np.cos(2 * h)
        + 0.32 * np.cos(3 * h + np.radians(6))
        - 0.2 * np.cos(4 * h - np.radians(63))
    )
    SL = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    SC, SH = 1 + 0.045 * chroma, 1 + 0.015 * chroma * T
    angle = np.radians(60 * np.exp(-(((np.degrees(h) - 275) / 25) ** 2)))
    RT = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(angle)
    dL, dC = (L.T - L) / SL, (C2 - C1) / SC
    return np.sqrt(np.maximum(dL**2 + dC**2 + (dH / SH) ** 2 + RT * dC * dH / SH, 0))


if __name__ == "__main__":
    main()
